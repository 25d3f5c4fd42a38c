//! Instruction sets, chosen once at run time.

use std::sync::OnceLock;

/// What the processor can do, from least to most.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// Whatever the compiler makes of plain Rust for the target.
    Portable,
    Avx2,
    Avx512,
    /// AVX-512 with products of bfloat16 pairs.
    Avx512Bf16,
}

impl Level {
    /// The best level of this processor, or what `REM_SIMD` (`portable`, `avx2`, `avx512`) limits it to.
    pub fn of_this_machine() -> Self {
        static LEVEL: OnceLock<Level> = OnceLock::new();
        *LEVEL.get_or_init(|| {
            let limit = match std::env::var("REM_SIMD").as_deref() {
                Ok("portable") => Self::Portable,
                Ok("avx2") => Self::Avx2,
                Ok("avx512") => Self::Avx512,
                Ok(other) => {
                    eprintln!(
                        "warning: REM_SIMD={other} is none of portable, avx2, avx512: no limit"
                    );
                    Self::Avx512Bf16
                }
                Err(_) => Self::Avx512Bf16,
            };
            Self::detected().min(limit)
        })
    }

    /// The levels that this processor has.
    pub fn available() -> impl Iterator<Item = Self> {
        let best = Self::detected();
        [Self::Portable, Self::Avx2, Self::Avx512, Self::Avx512Bf16]
            .into_iter()
            .filter(move |level| *level <= best)
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

    pub fn name(self) -> &'static str {
        match self {
            Self::Portable => "portable",
            Self::Avx2 => "AVX2",
            Self::Avx512 => "AVX-512",
            Self::Avx512Bf16 => "AVX-512 with BF16",
        }
    }
}

/// Compiles a function once for each [`Level`] and calls the version of `level`, its first argument.
/// The body is plain Rust on slices, in loops that the compiler turns into vector instructions.
macro_rules! vectorised {
    ($(#[$meta:meta])* $vis:vis fn $name:ident($($arg:ident: $ty:ty),* $(,)?) $(-> $ret:ty)? $body:block) => {
        $(#[$meta])*
        #[allow(clippy::too_many_arguments)]
        $vis fn $name(level: $crate::cpu::level::Level, $($arg: $ty),*) $(-> $ret)? {
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
                use $crate::cpu::level::Level;
                match level {
                    // SAFETY: a level is made only where the processor has its instructions.
                    Level::Avx512 | Level::Avx512Bf16 => return unsafe { avx512($($arg),*) },
                    // SAFETY: as above.
                    Level::Avx2 => return unsafe { avx2($($arg),*) },
                    Level::Portable => {}
                }
            }
            #[cfg(not(target_arch = "x86_64"))]
            let _ = level;
            body($($arg),*)
        }
    };
}
pub(crate) use vectorised;
