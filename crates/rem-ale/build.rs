//! Compiles the emulator for the feature `atari`, from the sources that `scripts/setup-atari` fetches.
//! Does nothing without the feature, and never accesses the network.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    #[cfg(feature = "atari")]
    emulator::compile();
}

#[cfg(feature = "atari")]
mod emulator {
    use std::path::{Path, PathBuf};
    use std::{env, fs};

    /// The only version that `shim/hidden_state.cpp` supports: it reads private members.
    const VERSION: &str = "0.12.1";

    pub fn compile() {
        println!("cargo::rerun-if-env-changed=REM_ALE_SOURCE");
        println!("cargo::rerun-if-changed=shim");
        let root = source();
        println!("cargo::rustc-env=REM_ALE_BUILT_FROM={}", root.display());

        let ale = root.join("src/ale");
        let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets OUT_DIR"));
        write(&out.join("version.hpp"), &version_header());
        let mut files = vec![ale.join("ale_interface.cpp"), out.join("games.cpp")];
        for part in ["common", "emucore", "environment"] {
            add_sources(&ale.join(part), &mut files);
        }
        // A hundred small files with the same large headers compile ten times faster as one file.
        let mut games = Vec::new();
        add_sources(&ale.join("games"), &mut games);
        let include = |file: &PathBuf| format!("#include \"{}\"\n", file.display());
        write(
            &out.join("games.cpp"),
            &games.iter().map(include).collect::<String>(),
        );

        let mut build = cc::Build::new();
        build.cpp(true).std("c++17").opt_level(3).debug(false);
        build
            .define("NDEBUG", None)
            .include(root.join("src"))
            .include(&out);
        build.warnings(false).flag_if_supported("-w");
        // The TIA draws four pixels at a time through pointers of another type.
        build.flag_if_supported("-fno-strict-aliasing");
        // zlib.h of libz-sys.
        if let Some(dirs) = env::var_os("DEP_Z_INCLUDE") {
            build.includes(env::split_paths(&dirs));
        }
        build
            .files(files)
            .files(["shim/shim.cpp", "shim/hidden_state.cpp"]);
        build.compile("rem_ale");
    }

    fn source() -> PathBuf {
        let manifest = PathBuf::from(
            env::var_os("CARGO_MANIFEST_DIR").expect("cargo sets CARGO_MANIFEST_DIR"),
        );
        let workspace = manifest
            .ancestors()
            .nth(2)
            .expect("the crate is in crates/");
        let root = match env::var_os("REM_ALE_SOURCE") {
            // Cargo runs this in the crate's directory; users give paths relative to the workspace.
            Some(dir) => workspace.join(dir),
            None => workspace.join("third-party/ale"),
        };
        // Not the whole directory, which also contains the ROMs.
        for part in [
            "version.txt",
            "src/ale/ale_interface.cpp",
            "src/ale/ale_interface.hpp",
        ] {
            println!("cargo::rerun-if-changed={}", root.join(part).display());
        }
        if !root.join("src/ale/ale_interface.cpp").is_file() {
            fail(&format!(
                "the feature `atari` needs the emulator's sources, but {} does not contain them; run \
                 `scripts/setup-atari`, or set REM_ALE_SOURCE to an unpacked source distribution of ale-py {VERSION}",
                root.display()
            ));
        }
        let version = fs::read_to_string(root.join("version.txt")).unwrap_or_default();
        if version.trim() != VERSION {
            fail(&format!(
                "the emulator's sources in {} have version `{}`, but REM needs {VERSION}; run `scripts/setup-atari`",
                root.display(),
                version.trim()
            ));
        }
        root
    }

    fn add_sources(dir: &Path, files: &mut Vec<PathBuf>) {
        println!("cargo::rerun-if-changed={}", dir.display());
        let entries = fs::read_dir(dir)
            .and_then(|entries| entries.collect::<Result<Vec<_>, _>>())
            .unwrap_or_else(|error| fail(&format!("{}: {error}", dir.display())));
        let mut paths: Vec<_> = entries.iter().map(|entry| entry.path()).collect();
        paths.sort();
        for path in paths {
            if path.is_dir() {
                add_sources(&path, files);
            } else if path
                .extension()
                .is_some_and(|kind| kind == "cpp" || kind == "cxx")
            {
                files.push(path);
            }
        }
    }

    /// The header that ALE's own build generates.
    fn version_header() -> String {
        let parts: Vec<&str> = VERSION.split('.').collect();
        format!(
            "#pragma once\n\
             #define ALE_VERSION \"{VERSION}\"\n\
             #define ALE_VERSION_MAJOR \"{}\"\n\
             #define ALE_VERSION_MINOR \"{}\"\n\
             #define ALE_VERSION_PATCH \"{}\"\n\
             #define ALE_VERSION_GIT_SHA \"\"\n\
             #define STELLA_VERSION \"2.4.2\"\n",
            parts[0], parts[1], parts[2]
        )
    }

    fn write(file: &Path, text: &str) {
        fs::write(file, text).unwrap_or_else(|error| fail(&format!("{}: {error}", file.display())));
    }

    fn fail(message: &str) -> ! {
        println!("cargo::error={message}");
        std::process::exit(1);
    }
}
