use proptest::prelude::*;
use unicode_segmentation::UnicodeSegmentation;

use super::*;

fn passages(text: &str, format: DocumentFormat) -> Vec<(String, String)> {
    let split = split_document(text, format).unwrap();
    split.passages.into_iter().map(|passage| (passage.place, passage.text)).collect()
}

fn passage_list(passages: &[(&str, &str)]) -> Vec<(String, String)> {
    passages.iter().map(|(place, text)| ((*place).to_owned(), (*text).to_owned())).collect()
}

#[test]
fn plain_text_is_split_into_paragraphs() {
    let text = "\u{feff}One line\nand another.\n\n  \nThe end.";
    assert_eq!(
        passages(text, DocumentFormat::Text),
        passage_list(&[("lines 1-5", "One line\nand another.\n\nThe end.")])
    );
    assert_eq!(passages(" \n\n", DocumentFormat::Text), passage_list(&[]));
}

#[test]
fn passages_include_their_headings() {
    let text = "Before.\n\n# Guide\n\n## Opening *hours*\n\nOn weekdays\nfrom 9.\n\n### Sundays\n\nClosed.\n\n\
                ## Prices\n\n- adults **5 €**\n- children\n  nothing\n\n# Empty\n# End\nBye `now`.\n";
    let expected = passage_list(&[
        ("line 1", "Before."),
        ("Guide > Opening hours, lines 3-8", "Guide > Opening hours\n\nOn weekdays\nfrom 9."),
        ("Guide > Opening hours > Sundays, lines 10-12", "Guide > Opening hours > Sundays\n\nClosed."),
        ("Guide > Prices, lines 14-18", "Guide > Prices\n\n- adults 5 €\n- children\nnothing"),
        ("Empty, line 20", "Empty"),
        ("End, lines 21-22", "End\n\nBye now."),
    ]);
    assert_eq!(passages(text, DocumentFormat::Markdown), expected);
    assert_eq!(split_document(text, DocumentFormat::Markdown).unwrap().title.as_deref(), Some("Guide"));
}

#[test]
fn table_rows_stay_together() {
    let text = "| Day | Hours |\n|---|---|\n| Mon | 9-17 |\n| Sun | closed |\n\nAfter.\n";
    let expected = passage_list(&[("lines 1-6", "Day | Hours\nMon | 9-17\nSun | closed\n\nAfter.")]);
    assert_eq!(passages(text, DocumentFormat::Markdown), expected);
}

#[test]
fn html_yields_its_visible_text() {
    let text = "<!doctype html><html><head><title>The\n library</title><style>p { color: red }</style></head>\n<body>\n\
                <nav><a href=x>Home</a></nav><h1>Opening &amp; closing</h1>\n<p>From <b>9</b>\n to 5&nbsp;pm.\n<p>Bring \
                 your card<br>please.<script>alert('</p>')</script>\n<h2>Sundays</h2><ul><li>closed<li>really</ul>\n\
                <table><tr><td>a<td>b</td></tr></table><pre>one\n  two</pre>";
    let expected = passage_list(&[
        ("Opening & closing, lines 4-7", "Opening & closing\n\nFrom 9 to 5 pm.\n\nBring your card\nplease."),
        (
            "Opening & closing > Sundays, lines 8-10",
            "Opening & closing > Sundays\n\n- closed\n- really\n\na | b\n\none\n  two",
        ),
    ]);
    let split = split_document(text, DocumentFormat::Html).unwrap();
    assert_eq!(split.title.as_deref(), Some("The library"));
    assert_eq!(passages(text, DocumentFormat::Html), expected);
}

#[test]
fn a_long_paragraph_is_split_between_sentences() {
    let sentence = "The library opens at nine in the morning on every day of the week but Sunday. ";
    let text = format!("# Hours\n\n{}", sentence.repeat(40));
    let passages = passages(&text, DocumentFormat::Markdown);
    assert_eq!(passages.len(), 3);
    for (place, text) in &passages {
        assert!(text.ends_with("Sunday."), "{text}");
        assert!(text.starts_with("Hours\n\nThe library"), "{text}");
        assert!(place.starts_with("Hours, line"), "{place}");
    }
}

#[test]
fn a_very_long_word_is_split_between_grapheme_clusters() {
    let family = "👩‍👩‍👧";
    let passages = passages(&family.repeat(1_000), DocumentFormat::Text);
    assert!(passages.len() > 3);
    for (_, text) in &passages {
        assert!(text.chars().count() <= PASSAGE_CHARACTERS);
        assert!(text.graphemes(true).all(|character| character == family), "{text}");
    }
    let long_cluster = format!("e{}", "\u{301}".repeat(5_000));
    assert_eq!(self::passages(&long_cluster, DocumentFormat::Text).len(), 1);
}

#[test]
fn html_nesting_is_not_limited() {
    let deep = "<div><b>".repeat(50_000) + "words";
    assert_eq!(passages(&deep, DocumentFormat::Html).len(), 1);
}

/// The cost of each line of a paragraph grows with the number of open blocks: without a limit, 80 KB took seconds.
#[test]
fn markdown_nested_too_deeply_is_rejected() {
    let deep = |mark: &str, levels: usize| format!("words\n\n{}words\n{}", mark.repeat(levels), "more\n".repeat(10));
    for mark in ["> ", ">", "+ ", "1. ", "> - ", "* 2) "] {
        let per_mark = if mark.len() > 3 { 2 } else { 1 };
        let result = split_document(&deep(mark, 20_000), DocumentFormat::Markdown);
        assert_eq!(result, Err(SplitError::Nesting { line: 3 }), "{mark}");
        let levels = NESTED_BLOCKS / 2 / per_mark;
        assert!(!passages(&deep(mark, levels), DocumentFormat::Markdown).is_empty(), "{mark}");
    }
    // With indentation, each line opens one more list.
    let steps: String = (0..150).map(|level| format!("{}- words\n", "  ".repeat(level))).collect();
    assert_eq!(split_document(&steps, DocumentFormat::Markdown), Err(SplitError::Nesting { line: 101 }));
    assert_eq!(
        SplitError::Nesting { line: 3 }.to_string(),
        "line 3: block quotes and lists are nested more than 100 levels deep"
    );
}

#[test]
fn text_that_resembles_nesting_is_accepted() {
    let rule = format!("one\n\n{}\n\n{}\n\ntwo", "- ".repeat(200), "*".repeat(300));
    let code = format!("```\n{}words > 1\n{}\n```\n", " ".repeat(500), "9".repeat(500));
    for text in [rule, code] {
        assert_eq!(passages(&text, DocumentFormat::Markdown).len(), 1, "{text}");
    }
}

/// Runs a closure with the smallest stack of any thread that splits documents.
fn on_a_small_stack<T: Send + 'static>(run: impl FnOnce() -> T + Send + 'static) -> T {
    std::thread::Builder::new().stack_size(1024 * 1024).spawn(run).unwrap().join().unwrap()
}

fn attributes(count: usize) -> String {
    (0..count).map(|number| format!(" a{number}=\"1\"")).collect()
}

#[test]
fn a_tag_with_too_many_attributes_is_rejected_without_stack_overflow() {
    on_a_small_stack(|| {
        let many = attributes(50_000);
        let places =
            [(format!("\n<a{many}>words</a>"), 2), (format!("words\n</a{many}>"), 2), (format!("words<a{many}"), 1)];
        for (text, line) in places {
            assert_eq!(split_document(&text, DocumentFormat::Html), Err(SplitError::Attributes { line }));
        }
        let error = SplitError::Attributes { line: 2 }.to_string();
        assert_eq!(error, "line 2: a tag has more than 128 attributes");
    });
}

#[test]
fn a_tag_with_the_maximum_number_of_attributes_is_accepted() {
    on_a_small_stack(|| {
        let most = attributes(TAG_ATTRIBUTES);
        let text = format!("<p{most}>one</p{most}><p{most}>two");
        assert_eq!(passages(&text, DocumentFormat::Html), passage_list(&[("line 1", "one\n\ntwo")]));
    });
}

#[test]
fn a_document_with_too_many_passages_is_rejected() {
    let text = |sections: usize| "# h\n\na\n\n".repeat(sections);
    assert_eq!(passages(&text(DOCUMENT_PASSAGES), DocumentFormat::Markdown).len(), DOCUMENT_PASSAGES);
    let result = split_document(&text(DOCUMENT_PASSAGES + 1), DocumentFormat::Markdown);
    assert_eq!(result, Err(SplitError::Passages));
}

#[test]
fn a_heading_with_many_combining_marks_is_truncated() {
    let marks = "\u{301}".repeat(100_000);
    let split = split_document(&format!("# a{marks}\n\nwords\n"), DocumentFormat::Markdown).unwrap();
    assert!(split.passages[0].place.len() < 1_100, "{}", split.passages[0].place.len());
    let split = split_document(&format!("# a{}\n\nwords\n", "b".repeat(98)), DocumentFormat::Markdown).unwrap();
    assert!(!split.title.unwrap().ends_with('…'));
}

#[test]
fn files_that_are_too_large_or_not_text_are_rejected() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.txt");
    for (bytes, expected) in [
        (vec![b'a'; DOCUMENT_BYTES as usize + 1], "exceeds 16777216 bytes"),
        (vec![0xff, 0xfe, b'a'], "is not UTF-8 text"),
        (b"PK\0".to_vec(), "is not UTF-8 text"),
    ] {
        std::fs::write(&path, bytes).unwrap();
        let error = read_document(&path).unwrap_err().to_string();
        assert!(error.ends_with(expected), "{error}");
    }
    std::fs::write(&path, "words").unwrap();
    assert_eq!(read_document(&path).unwrap(), "words");
    assert!(read_document(&folder.path().join("none.txt")).unwrap_err().to_string().starts_with("cannot read "));
}

#[test]
fn the_extension_determines_the_format() {
    for (name, format) in [
        ("a.TXT", Some(DocumentFormat::Text)),
        ("a.md", Some(DocumentFormat::Markdown)),
        ("b/a.htm", Some(DocumentFormat::Html)),
        ("a.pdf", None),
        ("README", None),
    ] {
        assert_eq!(DocumentFormat::from_path(Path::new(name)), format, "{name}");
    }
}

proptest! {
    /// The passages contain every word, in order, and no passage exceeds the limit.
    #[test]
    fn no_word_is_lost(words in proptest::collection::vec("[a-zé]{1,12}|x{900}|\\PC{1,3}|\n\n", 0..60)) {
        let text = words.join(" ");
        let passages = split_document(&text, DocumentFormat::Text).unwrap().passages;
        let all_text: String = passages.iter().map(|passage| passage.text.as_str()).collect();
        let letters = |text: &str| text.chars().filter(|c| !c.is_whitespace()).collect::<String>();
        prop_assert_eq!(letters(&all_text), letters(text.strip_prefix('\u{feff}').unwrap_or(&text)));
        for passage in &passages {
            prop_assert!(passage.text.chars().count() <= PASSAGE_CHARACTERS);
        }
    }

    /// Any text can be split.
    #[test]
    fn any_text_can_be_split(text in "(\\PC|<[a-z/]{1,6}>|[#*>|\n -]){0,200}") {
        for format in [DocumentFormat::Text, DocumentFormat::Markdown, DocumentFormat::Html] {
            for passage in split_document(&text, format).unwrap().passages {
                prop_assert!(!passage.text.is_empty() && !passage.place.is_empty());
            }
        }
    }
}
