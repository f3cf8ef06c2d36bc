//! British and American spellings of English words. Queries search for both: `favourite` also finds `favorite`.

/// Returns the other spelling of a folded word, if it has one.
pub(super) fn other_spelling(word: &str) -> Option<String> {
    with_other_stem(word).or_else(|| with_other_ending(word)).filter(|other| other != word)
}

fn with_other_stem(word: &str) -> Option<String> {
    let replace = |from: &str, to: &str| word.strip_prefix(from).map(|rest| format!("{to}{rest}"));
    STEMS.iter().find_map(|(british, american)| replace(british, american).or_else(|| replace(american, british)))
}

fn with_other_ending(word: &str) -> Option<String> {
    if word.len() < MIN_LENGTH_WITH_ENDING {
        return None;
    }
    let replace = |from: &str, to: &str| word.strip_suffix(from).map(|start| format!("{start}{to}"));
    ENDINGS.iter().find_map(|(british, american)| replace(british, american).or_else(|| replace(american, british)))
}

/// Shorter words (`rise`, `size`, `prize`) have only one spelling.
const MIN_LENGTH_WITH_ENDING: usize = 7;

const ENDINGS: [(&str, &str); 9] = [
    ("isation", "ization"),
    ("isations", "izations"),
    ("ising", "izing"),
    ("ised", "ized"),
    ("ises", "izes"),
    ("ise", "ize"),
    ("yse", "yze"),
    ("ysed", "yzed"),
    ("ysing", "yzing"),
];

/// The beginnings of words that are spelt differently. Each also covers the inflected forms of its words.
const STEMS: [(&str, &str); 45] = [
    ("aeroplane", "airplane"),
    ("aluminium", "aluminum"),
    ("anaesthe", "anesthe"),
    ("armour", "armor"),
    ("behaviour", "behavior"),
    ("cancelled", "canceled"),
    ("cancelling", "canceling"),
    ("catalogue", "catalog"),
    ("centimetre", "centimeter"),
    ("centre", "center"),
    ("colour", "color"),
    ("cosy", "cozy"),
    ("defence", "defense"),
    ("diarrhoea", "diarrhea"),
    ("doughnut", "donut"),
    ("endeavour", "endeavor"),
    ("enrolment", "enrollment"),
    ("favour", "favor"),
    ("flavour", "flavor"),
    ("grey", "gray"),
    ("gynaecolog", "gynecolog"),
    ("harbour", "harbor"),
    ("honour", "honor"),
    ("humour", "humor"),
    ("jewellery", "jewelry"),
    ("kilometre", "kilometer"),
    ("labelled", "labeled"),
    ("labour", "labor"),
    ("licence", "license"),
    ("litre", "liter"),
    ("millimetre", "millimeter"),
    ("modelling", "modeling"),
    ("mould", "mold"),
    ("neighbour", "neighbor"),
    ("orthopaedic", "orthopedic"),
    ("paediatric", "pediatric"),
    ("programme", "program"),
    ("pyjama", "pajama"),
    ("rumour", "rumor"),
    ("sceptic", "skeptic"),
    ("theatre", "theater"),
    ("travell", "travel"),
    ("tyre", "tire"),
    ("whisky", "whiskey"),
    ("yoghurt", "yogurt"),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spellings_are_converted_both_ways() {
        for (british, american) in [
            ("favourite", "favorite"),
            ("neighbours", "neighbors"),
            ("organised", "organized"),
            ("travelling", "traveling"),
            ("theatre", "theater"),
            ("analyse", "analyze"),
        ] {
            assert_eq!(other_spelling(british).as_deref(), Some(american));
            assert_eq!(other_spelling(american).as_deref(), Some(british));
        }
        for word in ["hour", "rise", "sizes", "dentist", "arm", ""] {
            assert_eq!(other_spelling(word), None, "{word}");
        }
    }
}
