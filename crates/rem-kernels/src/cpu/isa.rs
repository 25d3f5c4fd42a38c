//! Instruction sets, selected once at run time.

use std::io::Write;
use std::sync::OnceLock;

/// SIMD instruction sets, in ascending order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Isa {
    /// The target's baseline.
    Portable,
    /// AVX2 with FMA.
    Avx2,
    /// AVX-512 F, BW, DQ and VL.
    Avx512,
    /// AVX-512 with bfloat16 dot products.
    Avx512Bf16,
}

impl Isa {
    /// The processor's best instruction set, limited by `REM_SIMD` (`portable`, `avx2` or `avx512`).
    pub fn selected() -> Self {
        static SELECTED: OnceLock<Isa> = OnceLock::new();
        *SELECTED.get_or_init(|| {
            let limit = match std::env::var("REM_SIMD").as_deref() {
                Ok("portable") => Self::Portable,
                Ok("avx2") => Self::Avx2,
                Ok("avx512") => Self::Avx512,
                Ok(other) => {
                    let _ = writeln!(
                        std::io::stderr(),
                        "warning: ignored REM_SIMD={other}: expected portable, avx2 or avx512"
                    );
                    Self::Avx512Bf16
                }
                Err(_) => Self::Avx512Bf16,
            };
            Self::detected().min(limit)
        })
    }

    /// The instruction sets that the processor supports.
    pub fn available() -> impl Iterator<Item = Self> {
        let best = Self::detected();
        [Self::Portable, Self::Avx2, Self::Avx512, Self::Avx512Bf16]
            .into_iter()
            .filter(move |isa| *isa <= best)
    }

    #[cfg(target_arch = "x86_64")]
    fn detected() -> Self {
        let avx2 = is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma");
        let avx512 = is_x86_feature_detected!("avx512f")
            && is_x86_feature_detected!("avx512bw")
            && is_x86_feature_detected!("avx512dq")
            && is_x86_feature_detected!("avx512vl");
        match (avx2, avx512, is_x86_feature_detected!("avx512bf16")) {
            (true, true, true) => Self::Avx512Bf16,
            (true, true, false) => Self::Avx512,
            (true, false, _) => Self::Avx2,
            _ => Self::Portable,
        }
    }

    #[cfg(not(target_arch = "x86_64"))]
    fn detected() -> Self {
        Self::Portable
    }

    /// The name for users.
    pub fn name(self) -> &'static str {
        match self {
            Self::Portable => "portable",
            Self::Avx2 => "AVX2",
            Self::Avx512 => "AVX-512",
            Self::Avx512Bf16 => "AVX-512 with BF16",
        }
    }
}

/// Compiles a function once per [`Isa`] and adds a first argument `isa` that selects the version. The body is plain
/// Rust on slices, in loops that the compiler vectorizes.
macro_rules! multiversion {
    ($(#[$meta:meta])* $vis:vis fn $name:ident($($arg:ident: $ty:ty),* $(,)?) $(-> $ret:ty)? $body:block) => {
        $(#[$meta])*
        #[allow(clippy::too_many_arguments)]
        $vis fn $name(isa: $crate::cpu::isa::Isa, $($arg: $ty),*) $(-> $ret)? {
            #[inline(always)]
            #[allow(clippy::too_many_arguments)]
            fn body($($arg: $ty),*) $(-> $ret)? $body

            #[cfg(target_arch = "x86_64")]
            {
                #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx2,fma")]
                #[allow(clippy::too_many_arguments)]
                fn avx512($($arg: $ty),*) $(-> $ret)? {
                    body($($arg),*)
                }
                #[target_feature(enable = "avx2,fma")]
                #[allow(clippy::too_many_arguments)]
                fn avx2($($arg: $ty),*) $(-> $ret)? {
                    body($($arg),*)
                }
                use $crate::cpu::isa::Isa;
                match isa {
                    // SAFETY: an `Isa` exists only where the processor supports it.
                    Isa::Avx512 | Isa::Avx512Bf16 => return unsafe { avx512($($arg),*) },
                    // SAFETY: as above.
                    Isa::Avx2 => return unsafe { avx2($($arg),*) },
                    Isa::Portable => {}
                }
            }
            #[cfg(not(target_arch = "x86_64"))]
            let _ = isa;
            body($($arg),*)
        }
    };
}
pub(crate) use multiversion;
