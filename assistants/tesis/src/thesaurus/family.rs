//! Families of words with one root: `divide` and `división`, `prescribe` and `prescripción`, `omite` and `omisión`.
//!
//! The stemmer keeps them apart. The members of a family come from the lists of legal words, because the index only finds given words.

use std::collections::HashMap;
use std::sync::LazyLock;

use super::everyday;
use crate::intent::words;

/// The minimum number of letters of a word with a family.
const MIN_LETTERS: usize = 5;
/// The minimum number of letters that remain without an ending.
const MIN_ROOT_LETTERS: usize = 4;

/// Endings of nouns, adjectives and verbs.
const ENDINGS: &str = "
    aciones iciones uciones ciones iones acion icion ucion cion ion amientos imientos amiento imiento mientos miento
    adores edores idores adoras edoras idoras ador edor idor adora edora idora dores dor
    ables ibles able ible anzas anza encias ancias encia ancia adas idas ados idos ada ida ado ido
    antes entes ante ente ativos ativas ativo ativa idades idad ales al arios arias ario aria eza aduras adura uras ura edad
    ar er ir aban aba aron ieron iera an en as os es ad io a o e";

/// The ends of roots that differ between the members of a family: `notifique` and `notificar`, `división` and `dividir`, `omisión` and
/// `omitir`, `elección` and `elegir`, `inscrito` and `inscribir`.
const VARIANTS: [(&str, &str); 10] = [
    ("qu", "c"),
    ("gu", "g"),
    ("z", "c"),
    ("scrip", "scrib"),
    ("scrit", "scrib"),
    ("uc", "u"),
    ("eg", "ec"),
    ("s", "d"),
    ("t", "d"),
    ("y", ""),
];

/// Returns the root of a folded word.
fn root(word: &str) -> String {
    static LONGEST_FIRST: LazyLock<Vec<&str>> = LazyLock::new(|| {
        let mut endings: Vec<&str> = ENDINGS.split_whitespace().collect();
        endings.sort_by_key(|ending| std::cmp::Reverse(ending.len()));
        endings
    });
    let without = |ending: &&str| word.strip_suffix(*ending).filter(|root| root.len() >= MIN_ROOT_LETTERS);
    let root = LONGEST_FIRST.iter().find_map(without).unwrap_or(word);
    let variant = VARIANTS.iter().find_map(|(end, other)| Some(format!("{}{other}", root.strip_suffix(end)?)));
    let mut root = variant.unwrap_or_else(|| root.to_owned());
    if root.len() >= MIN_LETTERS && root.ends_with(['a', 'e', 'i', 'o', 'u']) {
        root.pop();
    }
    root
}

/// The stems of the members by root.
static FAMILIES: LazyLock<HashMap<String, Vec<String>>> = LazyLock::new(|| {
    let mut members: Vec<&str> = words::LEGAL.iter().copied().chain(super::words()).chain(everyday::words()).collect();
    members.sort_unstable();
    members.dedup();
    members.retain(|word| word.len() >= MIN_LETTERS && !super::is_stop_word(word));
    let mut families: HashMap<String, Vec<String>> = HashMap::new();
    for (word, stem) in members.iter().zip(everyday::stems(&members.join(" "))) {
        let family = families.entry(root(word)).or_default();
        if !family.contains(&stem) {
            family.push(stem);
        }
    }
    families.retain(|_, family| family.len() > 1);
    families
});

/// Returns the stems of the legal words with the root of a folded word, including its own.
pub(crate) fn stems_of_family(word: &str) -> &'static [String] {
    let family = if word.len() < MIN_LETTERS { None } else { FAMILIES.get(&root(word)) };
    family.map_or(&[], Vec::as_slice)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_with_one_root_are_a_family() {
        for (word, other) in [
            ("divide", "division"),
            ("notifique", "notificacion"),
            ("prescribe", "prescripcion"),
            ("omite", "omision"),
            ("protege", "proteccion"),
        ] {
            let stem = &everyday::stems(other)[0];
            assert!(stems_of_family(word).contains(stem), "{word} {other}: {} {}", root(word), root(other));
        }
        assert!(stems_of_family("zapato").is_empty() && stems_of_family("a").is_empty());
    }
}
