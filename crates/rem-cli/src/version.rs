//! `rem --version --verbose`: what this program was built from, and for.

/// The version, the git revision, what is built in, and what the processor offers.
pub fn verbose() -> String {
    let features = [("atari", cfg!(feature = "atari"))];
    let devices = [
        ("flex", true),
        ("cuda", cfg!(feature = "cuda")),
        ("vulkan", cfg!(feature = "vulkan")),
        ("wgpu", cfg!(feature = "wgpu")),
        ("metal", cfg!(feature = "metal")),
        ("rocm", cfg!(feature = "rocm")),
    ];
    let listed = |all: &[(&str, bool)]| {
        let names: Vec<&str> = all.iter().filter(|(_, on)| *on).map(|(n, _)| *n).collect();
        match names.is_empty() {
            true => "none".into(),
            false => names.join(", "),
        }
    };
    format!(
        "rem {}\n\
         git revision: {}\n\
         features: {}\n\
         devices: {}\n\
         instruction set: {}\n\
         build: {}\n",
        env!("CARGO_PKG_VERSION"),
        rem::GIT_REVISION,
        listed(&features),
        listed(&devices),
        rem_kernels::Isa::selected().name(),
        if cfg!(debug_assertions) {
            "debug"
        } else {
            "release"
        },
    )
}
