use super::*;

/// Returns the last of the messages with names. Messages of the user and of the assistant alternate.
fn named(messages: &[&str]) -> Option<String> {
    let (last, earlier) = messages.split_last().unwrap();
    let roles = [Role::User, Role::Assistant].into_iter().cycle();
    SpokenLines::of(roles.zip(earlier)).with_names(last)
}

#[test]
fn lines_are_referred_to_by_questions_and_answers() {
    let two =
        "Good service on 17 lines; these have problems:\nJubilee line: severe delays.\nCentral line: minor delays.";
    let (good, bad) = ("Bakerloo line: good service.", "Northern line: minor delays. Signal failure.");
    for (messages, expected) in [
        (
            &["Bakerloo status", good, "and the Northern", bad, "and the first line I asked about, still fine?"][..],
            Some("and the Bakerloo line, still fine?"),
        ),
        (
            &["Bakerloo status", good, "and the Northern", bad, "the line I asked about first, what caused it?"],
            Some("the Bakerloo line, what caused it?"),
        ),
        (
            &["any problems", two, "how bad is the Jubilee", "Jubilee line: severe delays.", "and the other one?"],
            Some("and the Central line?"),
        ),
        (&["Bakerloo status", good, "and the Northern", bad, "and the other one?"], Some("and the Bakerloo line?")),
        (
            &["Bakerloo status", good, "and the Northern", bad, "which of those two had a problem?"],
            Some("status of the Bakerloo line and the Northern line?"),
        ),
        (&["Bakerloo status", good, "and the Northern", bad, "why?"], Some("why is the Northern line delayed?")),
        (
            &[
                "Piccadilly status",
                bad,
                "other lines there?",
                "The Metropolitan line stops there.",
                "is that one running?",
            ],
            Some("is the Metropolitan line running?"),
        ),
        (
            &[
                "Northern ok?",
                bad,
                "which lines stop there?",
                "Circle and District lines.",
                "is the delayed line step-free?",
            ],
            Some("is the Northern line step-free?"),
        ),
        (
            &[
                "Angel to Poplar",
                "Take the Northern line to Bank.\nTake the Jubilee line to Poplar.",
                "is the second line ok?",
            ],
            Some("is the Jubilee line ok?"),
        ),
        (&["Northern ok?", bad, "which one is faster?"], None),
        (&["hello", "Hello.", "the other one"], None),
        (&["Northern ok?", bad, "which line did I ask about?"], None),
    ] {
        assert_eq!(named(messages).as_deref(), expected, "{messages:?}");
    }
}
