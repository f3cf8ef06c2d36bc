//! The épocas of the Semanario Judicial, numbered from 1 to 12.

use threadkeep::core::text::fold;

const NAMES: [&str; 12] = [
    "Primera",
    "Segunda",
    "Tercera",
    "Cuarta",
    "Quinta",
    "Sexta",
    "Séptima",
    "Octava",
    "Novena",
    "Décima",
    "Undécima",
    "Duodécima",
];

/// Reads an época: `Undécima Época`, `11a. Época`, `11a.`, `11`.
pub(crate) fn parse(text: &str) -> Option<u8> {
    let mut words =
        text.split(|c: char| !c.is_alphanumeric() && !matches!(c, 'ª' | 'º')).filter(|word| !word.is_empty());
    let first = fold(words.next()?);
    let number = NAMES.iter().position(|name| fold(name) == first).map(|at| at as u8 + 1);
    let digits = first.trim_end_matches(['a', 'o']);
    number.or_else(|| digits.parse().ok().filter(|number| (1..=12).contains(number)))
}

/// Returns the name of an época: `Undécima Época`.
pub(crate) fn name(epoca: u8) -> String {
    match NAMES.get(usize::from(epoca).wrapping_sub(1)) {
        Some(name) => format!("{name} Época"),
        None => format!("{epoca}a. Época"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_numbers_are_read() {
        for (text, expected) in [
            ("Undécima Época", Some(11)),
            ("undecima epoca", Some(11)),
            ("11a. Época", Some(11)),
            ("11ª", Some(11)),
            ("9", Some(9)),
            ("Duodécima", Some(12)),
            ("13a.", None),
            ("", None),
        ] {
            assert_eq!(parse(text), expected, "{text}");
        }
        assert_eq!(name(11), "Undécima Época");
    }
}
