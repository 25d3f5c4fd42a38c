//! Compute devices by name. A device that is not available is an error: there is no silent fallback.

use burn::tensor::{Device, FloatDType};

use crate::config::{Config, Precision};
use crate::error::{Error, Result};

/// Opens the device of a config.
///
/// # Errors
/// If the device is not available, or does not support the precision of the config.
pub fn of(config: &Config) -> Result<Device> {
    let device = open(&config.device)?;
    if config.precision == Precision::Mixed && !device.supports_dtype(FloatDType::BF16) {
        return Err(Error::Device {
            message: format!("device `{}` does not support bfloat16", config.device),
            hint: "use `--set precision=f32`".into(),
        });
    }
    Ok(device)
}

/// Opens `flex` (the CPU), or one of `cuda`, `vulkan`, `wgpu`, `metal`, `rocm` with an optional `:index`.
///
/// # Errors
/// If the name is unknown, the device is not available, or the program was built without its backend.
pub fn open(name: &str) -> Result<Device> {
    let (kind, index) = name.split_once(':').unwrap_or((name, "0"));
    let index: usize = index.parse().map_err(|_| Error::Device {
        message: format!("device `{name}`: `{index}` is not a number"),
        hint: "for example `--device cuda:0`".into(),
    })?;
    match kind {
        "flex" if index == 0 => Ok(Device::flex()),
        "flex" => Err(missing(name, 1)),
        "cuda" | "vulkan" | "wgpu" | "metal" | "rocm" => gpu(name, kind, index),
        _ => Err(Error::Device {
            message: format!("unknown device `{name}`"),
            hint: "the devices are flex, cuda, vulkan, wgpu, metal and rocm".into(),
        }),
    }
}

fn missing(name: &str, count: usize) -> Error {
    Error::Device {
        message: format!("device `{name}` not found: {count} of this kind available"),
        hint: "use `--device flex`, the CPU".into(),
    }
}

/// Enumerates the devices before it opens one: opening an absent GPU panics inside the driver.
#[allow(unused_variables, unreachable_code)]
fn gpu(name: &str, kind: &str, index: usize) -> Result<Device> {
    #[cfg(any(
        feature = "cuda",
        feature = "vulkan",
        feature = "wgpu",
        feature = "metal",
        feature = "rocm"
    ))]
    {
        use burn::tensor::DeviceType;
        let wanted = match kind {
            #[cfg(feature = "cuda")]
            "cuda" => Some(DeviceType::Cuda),
            #[cfg(feature = "rocm")]
            "rocm" => Some(DeviceType::Rocm),
            #[cfg(feature = "vulkan")]
            "vulkan" => Some(DeviceType::Vulkan),
            #[cfg(feature = "metal")]
            "metal" => Some(DeviceType::Metal),
            #[cfg(feature = "wgpu")]
            "wgpu" => Some(DeviceType::Wgpu),
            _ => None,
        };
        if let Some(wanted) = wanted {
            // A missing driver panics instead of returning no devices.
            let found = std::panic::catch_unwind(|| Device::enumerate(wanted).into_vec())
                .unwrap_or_default();
            let count = found.len();
            return found
                .into_iter()
                .nth(index)
                .ok_or_else(|| missing(name, count));
        }
    }
    Err(Error::Device {
        message: format!("device `{name}`: this program was built without `{kind}`"),
        hint: format!(
            "build with `cargo build --release --features {kind}`, or use `--device flex`"
        ),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unavailable_devices_are_errors_with_a_hint() {
        assert!(open("flex").is_ok());
        for name in ["flex:1", "cuda:x", "quantum", "cuda:99"] {
            let error = open(name).unwrap_err();
            assert!(
                error.to_string().contains(name) && error.hint().is_some(),
                "{error}"
            );
        }
    }
}
