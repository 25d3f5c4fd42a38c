//! `docs/reference/metrics.md` lists every metric.

use std::path::Path;

/// Set `REM_UPDATE_DOCS=1` to rewrite the page.
#[test]
fn the_reference_page_is_current() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/metrics.md");
    let expected = rem_run::metrics::reference();
    if std::env::var_os("REM_UPDATE_DOCS").is_some() {
        std::fs::create_dir_all(page.parent().unwrap()).unwrap();
        std::fs::write(&page, &expected).unwrap();
    }
    let found = std::fs::read_to_string(&page).unwrap_or_default();
    assert!(
        found == expected,
        "docs/reference/metrics.md is out of date: run `REM_UPDATE_DOCS=1 cargo test -p rem-run`"
    );
}
