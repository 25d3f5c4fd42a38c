//! What every page has to satisfy.

use rem_browser::Browser;

/// A desktop and a phone.
pub const SIZES: [(u32, u32); 2] = [(1280, 900), (400, 800)];

/// Nothing overflows to the right, every control has an accessible name, and there is one main heading.
pub fn assert_layout(browser: &mut Browser, what: &str, width: u32) {
    let found = browser.evaluate(
        r#"({page: document.documentElement.scrollWidth,
        wide: [...document.querySelectorAll('main *')].filter(e => !e.closest('.scroll, [role=tablist], svg')
            && e.getBoundingClientRect().right > innerWidth + 1).map(e => e.outerHTML.slice(0, 90)),
        headings: document.querySelectorAll('h1').length,
        unnamed: [...document.querySelectorAll('button, a, input, select, summary, canvas[role=img], svg[role=img]')].filter(e => {
            const by = e.getAttribute('aria-labelledby');
            return !(e.textContent.trim() || e.getAttribute('aria-label') || e.closest('label')?.textContent.trim()
                || (by && document.getElementById(by)));
        }).map(e => e.outerHTML.slice(0, 90))})"#,
    );
    assert!(
        found["page"].as_u64() <= Some(width.into()),
        "{what}: {found}"
    );
    assert_eq!(found["wide"], serde_json::json!([]), "{what}");
    assert_eq!(found["unnamed"], serde_json::json!([]), "{what}");
    assert_eq!(found["headings"], 1, "{what}");
}
