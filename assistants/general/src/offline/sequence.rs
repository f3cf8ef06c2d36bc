//! Things that the user listed in their order, over one or several messages: "first the glazier", "after that the locksmith, and finally
//! the dump".

use threadkeep::dialogue::Utterance;

/// The maximum number of words in a thing.
const MAX_WORDS: usize = 8;

/// Returns the things of the newest sequence, in their order.
pub(super) fn sequence(said: &[String]) -> Option<Vec<String>> {
    let mut things: Vec<String> = Vec::new();
    for text in said {
        for clause in text.split([',', ';', ':', '.', '!', '\n']).flat_map(|clause| clause.split(" and ")) {
            let Some((is_first, thing)) = ordered(clause) else { continue };
            if is_first {
                things.clear();
            }
            if is_first || !things.is_empty() {
                things.push(thing);
            }
        }
    }
    (things.len() > 1).then_some(things)
}

/// Returns the thing of a clause that begins with a word for its place, and whether it is the first one.
fn ordered(clause: &str) -> Option<(bool, String)> {
    let utterance = Utterance::new(clause);
    let start = usize::from(utterance.word(0) == "and");
    let (is_first, length) = match (utterance.word(start), utterance.word(start + 1)) {
        ("first", "of") if utterance.word(start + 2) == "all" => (true, 3),
        ("first" | "firstly", _) => (true, 1),
        ("after", "that" | "this") => (false, 2),
        ("then" | "next" | "afterwards" | "finally" | "lastly" | "secondly" | "thirdly" | "last", _) => (false, 1),
        _ => return None,
    };
    let thing = utterance.words().get(start + length)?.span.start;
    let words = utterance.words().len() - start - length;
    (words <= MAX_WORDS).then(|| (is_first, clause[thing..].trim().to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn things_are_listed_in_order() {
        let said = |texts: &[&str]| sequence(&texts.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>());
        let trip =
            ["Stops of the trip: first Lyon.", "It will be hot.", "After that Nice", "then Genoa, and finally Pisa"];
        assert_eq!(said(&trip).unwrap(), ["Lyon", "Nice", "Genoa", "Pisa"]);
        assert_eq!(said(&["My first car was red.", "Then I sold it."]), None);
        assert_eq!(said(&["first the bank"]), None);
    }
}
