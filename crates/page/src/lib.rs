//! The files of the page that `threadkeep serve` shows, built from the folder `web` of this repository.
//!
//! `cargo xtask web` builds them into web/dist, which a later build of this crate includes. A build without that folder, for
//! example on a machine without Node.js, contains no files. The server then shows a plain page. This crate has no code: it
//! exists so that only the program, and not the server library, contains the page.
#![warn(missing_docs)]

include!(concat!(env!("OUT_DIR"), "/files.rs"));

#[cfg(test)]
mod tests {
    use super::FILES;

    /// The page is complete, or not there at all. It loads nothing from other hosts, and has no inline code.
    #[test]
    fn the_page_is_complete_and_self_contained() {
        let find = |name: &str| FILES.iter().find(|(file, _)| *file == name).map(|(_, bytes)| *bytes);
        let Some(index) = find("index.html") else {
            assert!(FILES.is_empty());
            return;
        };
        let index = std::str::from_utf8(index).unwrap();
        assert!(!index.contains("<style") && !index.contains("://"), "{index}");
        assert!(
            !index.replace("<script type=\"module\" crossorigin src=\"./assets/", "").contains("<script"),
            "{index}"
        );
        let linked = index.split('"').filter_map(|part| part.strip_prefix("./"));
        let linked: Vec<&str> = linked.collect();
        assert!(linked.len() >= 3, "{index}");
        for file in linked {
            assert!(find(file).is_some(), "{file} is missing");
        }
    }
}
