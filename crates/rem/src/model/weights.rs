//! Parameters of a module by name, to and from safetensors files.

use std::collections::{BTreeMap, VecDeque};

use burn::module::{Module, ModuleMapper, ModuleVisitor, Param};
use burn::tensor::{DType, Tensor, TensorData};
use rem_kernels::cpu::tile::bf16_bits;
use safetensors::{Dtype, SafeTensors, tensor::TensorView};

/// An f32 array on the host.
#[derive(Clone, Debug, PartialEq)]
pub struct Array {
    /// Size of each axis.
    pub shape: Vec<usize>,
    /// Elements in row-major order.
    pub data: Vec<f32>,
}

impl Array {
    /// Copies a tensor to the host and converts it to f32.
    pub fn from_tensor<const D: usize>(tensor: Tensor<D>) -> Self {
        let data = tensor.into_data().convert_dtype(DType::F32);
        Self {
            shape: data.shape().to_vec(),
            data: data.try_into_vec().expect("converted to f32 above"),
        }
    }

    /// A vector.
    pub(crate) fn flat(data: Vec<f32>) -> Self {
        Self {
            shape: vec![data.len()],
            data,
        }
    }

    /// Shape and elements for [`Tensor::from_data`].
    pub fn to_data(&self) -> TensorData {
        TensorData::new(self.data.clone(), self.shape.clone())
    }

    /// The transpose of a matrix. PyTorch stores linear weights as `[out, in]`, Burn as `[in, out]`.
    ///
    /// # Panics
    ///
    /// Panics if the array is not a matrix.
    pub(crate) fn transposed(&self) -> Self {
        let [rows, columns] = self.shape[..] else {
            panic!("shape {:?} is not a matrix", self.shape);
        };
        let at = |i: usize| self.data[(i % rows) * columns + i / rows];
        Self {
            shape: vec![columns, rows],
            data: (0..rows * columns).map(at).collect(),
        }
    }
}

/// Arrays by parameter path, for example `encoder.Cnn.blocks.0.norm.gamma`.
pub type Arrays = BTreeMap<String, Array>;

/// Copies a module's parameters to the host.
pub fn collect<M: Module>(module: &M) -> Arrays {
    struct Collector {
        path: Vec<String>,
        arrays: Arrays,
    }
    impl ModuleVisitor for Collector {
        fn enter_module(&mut self, name: &str, _container: &str) {
            self.path.push(name.to_string());
        }
        fn exit_module(&mut self, _name: &str, _container: &str) {
            self.path.pop();
        }
        fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
            let array = Array::from_tensor(param.val());
            self.arrays.insert(self.path.join("."), array);
        }
    }
    let mut collector = Collector {
        path: Vec::new(),
        arrays: Arrays::new(),
    };
    module.visit(&mut collector);
    collector.arrays
}

/// Replaces a module's parameters.
///
/// # Errors
///
/// Returns the reason if a parameter is missing, has another shape, or is unknown. The module is dropped, so it is
/// never partially loaded.
pub fn apply<M: Module>(module: M, arrays: Arrays) -> std::result::Result<M, String> {
    struct Applier {
        path: Vec<String>,
        arrays: Arrays,
        problem: Option<String>,
    }
    impl ModuleMapper for Applier {
        fn enter_module(&mut self, name: &str, _container: &str) {
            self.path.push(name.to_string());
        }
        fn exit_module(&mut self, _name: &str, _container: &str) {
            self.path.pop();
        }
        fn map_float<const D: usize>(&mut self, param: Param<Tensor<D>>) -> Param<Tensor<D>> {
            let name = self.path.join(".");
            let wanted = param.lazy_shape().to_vec();
            match self.arrays.remove(&name) {
                Some(array) if array.shape == wanted => param.map(|old| {
                    Tensor::from_data(array.to_data(), &old.device())
                        .set_require_grad(old.is_require_grad())
                }),
                Some(array) => {
                    let found = array.shape;
                    self.problem.get_or_insert(format!(
                        "`{name}` has shape {found:?}, expected {wanted:?}"
                    ));
                    param
                }
                None => {
                    self.problem.get_or_insert(format!("`{name}` is missing"));
                    param
                }
            }
        }
    }
    let mut applier = Applier {
        path: Vec::new(),
        arrays,
        problem: None,
    };
    let module = module.map(&mut applier);
    match (applier.problem, applier.arrays.keys().next()) {
        (Some(problem), _) => Err(problem),
        (None, Some(extra)) => Err(format!("`{extra}` is not a parameter of this model")),
        (None, None) => Ok(module),
    }
}

/// A running mean of a module's parameters.
#[derive(Default)]
pub(crate) struct WeightAverage {
    mean: Arrays,
    count: usize,
}

impl WeightAverage {
    /// Adds the module's current parameters to the mean.
    pub(crate) fn add<M: Module>(&mut self, module: &M) {
        self.count += 1;
        let now = collect(module);
        if self.count == 1 {
            self.mean = now;
            return;
        }
        let share = 1.0 / self.count as f32;
        for (mean, now) in self.mean.values_mut().zip(now.into_values()) {
            for (mean, now) in mean.data.iter_mut().zip(now.data) {
                *mean += (now - *mean) * share;
            }
        }
    }

    /// The module with the mean parameters; unchanged if nothing was added.
    pub(crate) fn apply_to<M: Module>(self, module: M) -> M {
        match self.count {
            0 => module,
            _ => apply(module, self.mean).expect("parameters of the same module"),
        }
    }
}

/// The parameters of `average`, moved towards those of `now`: `decay * average + (1 - decay) * now`. Both are without
/// autodiff.
pub(crate) fn moving_average<M: Module>(average: M, now: &M, decay: f64) -> M {
    struct Towards {
        parameters: VecDeque<Tensor<1>>,
        decay: f64,
    }
    impl ModuleVisitor for Towards {
        fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
            let value = param.val();
            let count = value.shape().num_elements();
            self.parameters.push_back(value.reshape([count]));
        }
    }
    impl ModuleMapper for Towards {
        fn map_float<const D: usize>(&mut self, param: Param<Tensor<D>>) -> Param<Tensor<D>> {
            let now = self.parameters.pop_front();
            let now = now.expect("the same parameters in the same order");
            param.map(|old| {
                let now = now.reshape(old.shape());
                old.mul_scalar(self.decay) + now.mul_scalar(1.0 - self.decay)
            })
        }
    }
    let mut towards = Towards {
        parameters: VecDeque::new(),
        decay,
    };
    now.visit(&mut towards);
    average.map(&mut towards)
}

/// The bytes of a safetensors file. Equal arrays give equal bytes.
pub fn to_safetensors(arrays: &Arrays) -> Vec<u8> {
    serialize(arrays, Dtype::F32, f32::to_le_bytes)
}

/// The bytes of a safetensors file with the nearest bfloat16 of each weight, half as long as [`to_safetensors`].
pub(crate) fn to_bf16_safetensors(arrays: &Arrays) -> Vec<u8> {
    serialize(arrays, Dtype::BF16, |x| bf16_bits(x).to_le_bytes())
}

fn serialize<const N: usize>(
    arrays: &Arrays,
    dtype: Dtype,
    to_bytes: impl Fn(f32) -> [u8; N],
) -> Vec<u8> {
    let bytes: Vec<(&String, &Array, Vec<u8>)> = arrays
        .iter()
        .map(|(name, array)| {
            let bytes = array.data.iter().flat_map(|x| to_bytes(*x)).collect();
            (name, array, bytes)
        })
        .collect();
    let views = bytes.iter().map(|(name, array, bytes)| {
        let view = TensorView::new(dtype, array.shape.clone(), bytes)
            .expect("shape and length agree by construction");
        (name.as_str(), view)
    });
    safetensors::serialize(views, None).expect("serializing into memory")
}

/// Reads arrays from the bytes of a safetensors file. Types f32, f64, bf16, i64, i32 and u8 are converted to f32.
///
/// # Errors
///
/// Returns the reason if the bytes are not a safetensors file or an array has another type.
pub(crate) fn from_safetensors(bytes: &[u8]) -> std::result::Result<Arrays, String> {
    let file =
        SafeTensors::deserialize(bytes).map_err(|e| format!("not a safetensors file: {e}"))?;
    file.iter()
        .map(|(name, view)| {
            let data = to_f32(view.dtype(), view.data())
                .ok_or_else(|| format!("`{name}` has the unsupported type {:?}", view.dtype()))?;
            let shape = view.shape().to_vec();
            Ok((name.to_string(), Array { shape, data }))
        })
        .collect()
}

fn to_f32(dtype: Dtype, bytes: &[u8]) -> Option<Vec<f32>> {
    fn each<const N: usize>(bytes: &[u8], read: impl Fn([u8; N]) -> f32) -> Vec<f32> {
        bytes.as_chunks::<N>().0.iter().map(|b| read(*b)).collect()
    }
    Some(match dtype {
        Dtype::F32 => each(bytes, f32::from_le_bytes),
        Dtype::F64 => each(bytes, |b| f64::from_le_bytes(b) as f32),
        Dtype::BF16 => each(bytes, |b| {
            f32::from_bits(u32::from(u16::from_le_bytes(b)) << 16)
        }),
        Dtype::I64 => each(bytes, |b| i64::from_le_bytes(b) as f32),
        Dtype::I32 => each(bytes, |b| i32::from_le_bytes(b) as f32),
        Dtype::U8 => each(bytes, |[b]| f32::from(b)),
        _ => return None,
    })
}

/// The arrays whose names start with `prefix.`, with this prefix removed.
pub fn under(arrays: &Arrays, prefix: &str) -> Arrays {
    let dot = format!("{prefix}.");
    arrays
        .iter()
        .filter_map(|(name, a)| Some((name.strip_prefix(&dot)?.to_string(), a.clone())))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use burn::nn::{Linear, LinearConfig};
    use burn::tensor::Device;

    fn linear(i: usize, o: usize) -> Linear {
        LinearConfig::new(i, o).init(&Device::flex().autodiff())
    }

    #[test]
    fn weight_average_is_the_mean_of_added_parameters() {
        let (a, b, c) = (linear(3, 2), linear(3, 2), linear(3, 2));
        let mut average = WeightAverage::default();
        for module in [&a, &b, &c] {
            average.add(module);
        }
        let mean = collect(&average.apply_to(linear(3, 2)));
        let all = [&a, &b, &c].map(collect);
        for (name, mean) in &mean {
            for (i, x) in mean.data.iter().enumerate() {
                let expected: f32 = all.iter().map(|l| l[name].data[i] / 3.0).sum();
                assert!((x - expected).abs() < 1e-6, "{name}");
            }
        }
        let unchanged = WeightAverage::default().apply_to(a.clone());
        assert_eq!(collect(&unchanged), collect(&a));
    }

    #[test]
    fn moving_average_keeps_a_share_of_each_parameter() {
        let [old, now] = [linear(3, 2), linear(3, 2)].map(|module| module.valid());
        let mut average = old.clone();
        for _ in 0..2 {
            average = moving_average(average, &now, 0.75);
        }
        let [old, now, average] = [old, now, average].map(|module| collect(&module));
        for (name, average) in &average {
            assert_eq!(average.shape, old[name].shape);
            for (i, x) in average.data.iter().enumerate() {
                // 0.75² and 1 - 0.75².
                let expected = 0.5625 * old[name].data[i] + 0.4375 * now[name].data[i];
                assert!((x - expected).abs() < 1e-6, "{name}");
            }
        }
    }

    #[test]
    fn safetensors_round_trip_is_exact() {
        let from = collect(&linear(3, 2));
        let bytes = to_safetensors(&from);
        let module = apply(linear(3, 2), from_safetensors(&bytes).unwrap()).unwrap();
        assert_eq!(collect(&module), from);
        assert!(module.weight.val().is_require_grad());
        assert_eq!(to_safetensors(&collect(&module)), bytes);
    }

    #[test]
    fn bf16_files_hold_the_nearest_bfloat16_of_each_weight() {
        let from = collect(&linear(30, 20));
        let bytes = to_bf16_safetensors(&from);
        assert!(bytes.len() < to_safetensors(&from).len() * 6 / 10);
        let read = from_safetensors(&bytes).unwrap();
        for (name, array) in &from {
            assert_eq!(read[name].shape, array.shape);
            for (x, exact) in read[name].data.iter().zip(&array.data) {
                // Eight significant bits.
                assert!(
                    (x - exact).abs() <= exact.abs() / 256.0,
                    "{name}: {x}, {exact}"
                );
            }
        }
        assert_eq!(to_bf16_safetensors(&read), bytes);
    }

    #[test]
    fn wrong_shapes_missing_and_unknown_names_are_rejected() {
        let reason = |arrays| apply(linear(3, 2), arrays).unwrap_err();
        assert!(reason(collect(&linear(3, 4))).contains("[3, 4], expected [3, 2]"));
        let mut missing = collect(&linear(3, 2));
        missing.remove("bias");
        assert_eq!(reason(missing), "`bias` is missing");
        let mut extra = collect(&linear(3, 2));
        extra.insert("odd".into(), extra["bias"].clone());
        assert_eq!(reason(extra), "`odd` is not a parameter of this model");
        assert!(
            from_safetensors(b"no")
                .unwrap_err()
                .contains("not a safetensors file")
        );
    }

    #[test]
    fn transposing_twice_gives_the_matrix_back() {
        let a = Array {
            shape: vec![2, 3],
            data: vec![1., 2., 3., 4., 5., 6.],
        };
        assert_eq!(a.transposed().data, [1., 4., 2., 5., 3., 6.]);
        assert_eq!(a.transposed().transposed(), a);
    }
}
