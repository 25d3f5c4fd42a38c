//! Compiles the emulator for the feature `atari`, from sources that `scripts/setup-atari` has fetched.
//! Without the feature there is nothing to do; and nothing here ever touches the network.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    #[cfg(feature = "atari")]
    emulator::compile();
}

#[cfg(feature = "atari")]
mod emulator {
    use std::path::{Path, PathBuf};
    use std::{env, fs};

    /// The one version whose insides `shim/hidden_state.cpp` knows.
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
        // A hundred small files with the same large headers: together they compile ten times as fast.
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
        // The picture is drawn four pixels at a time, through pointers to numbers of another type.
        build.flag_if_supported("-fno-strict-aliasing");
        // Where libz-sys has put zlib.h.
        if let Some(folders) = env::var_os("DEP_Z_INCLUDE") {
            build.includes(env::split_paths(&folders));
        }
        build
            .files(files)
            .files(["shim/shim.cpp", "shim/hidden_state.cpp"]);
        build.compile("rem_ale");
    }

    fn source() -> PathBuf {
        let manifest = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").expect("cargo sets it"));
        let workspace = manifest
            .ancestors()
            .nth(2)
            .expect("a crate lies in crates/");
        let root = match env::var_os("REM_ALE_SOURCE") {
            // Cargo runs this in the crate's folder, people write paths from the workspace's.
            Some(folder) => workspace.join(folder),
            None => workspace.join("third-party/ale"),
        };
        // Not the whole folder: the ROMs are in it too.
        for part in [
            "version.txt",
            "src/ale/ale_interface.cpp",
            "src/ale/ale_interface.hpp",
        ] {
            println!("cargo::rerun-if-changed={}", root.join(part).display());
        }
        if !root.join("src/ale/ale_interface.cpp").is_file() {
            give_up(&format!(
                "the feature `atari` needs the emulator's sources, but they are not in {}; run `scripts/setup-atari` \
                 first, or let REM_ALE_SOURCE name an unpacked source distribution of ale-py {VERSION}",
                root.display()
            ));
        }
        let version = fs::read_to_string(root.join("version.txt")).unwrap_or_default();
        if version.trim() != VERSION {
            give_up(&format!(
                "the emulator's sources in {} are of version `{}`, but REM needs {VERSION}; run `scripts/setup-atari`",
                root.display(),
                version.trim()
            ));
        }
        root
    }

    fn add_sources(folder: &Path, files: &mut Vec<PathBuf>) {
        println!("cargo::rerun-if-changed={}", folder.display());
        let entries = fs::read_dir(folder)
            .and_then(|entries| entries.collect::<Result<Vec<_>, _>>())
            .unwrap_or_else(|error| give_up(&format!("{}: {error}", folder.display())));
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

    /// The header that the emulator's own build would generate.
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
        fs::write(file, text)
            .unwrap_or_else(|error| give_up(&format!("{}: {error}", file.display())));
    }

    fn give_up(message: &str) -> ! {
        println!("cargo::error={message}");
        std::process::exit(1);
    }
}
