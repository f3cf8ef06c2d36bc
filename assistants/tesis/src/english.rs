//! English words in a message, for people who write Spanish as a second language.

use crate::clave::{References, fold_text};

/// The number of English function words from which a message counts as English.
const MIN_ENGLISH: usize = 2;

/// English function words that are no Spanish words.
const FUNCTION_WORDS: [&str; 27] = [
    "the", "is", "of", "what", "about", "for", "please", "need", "are", "does", "my", "can", "how", "when", "which",
    "who", "and", "not", "this", "that", "have", "there", "any", "was", "from", "am", "it",
];

/// English terms, longest first where one contains another, and their Spanish equivalents.
const TERMS: [(&str, &str); 64] = [
    ("number of register", "registro"),
    ("register number", "registro"),
    ("registration number", "registro"),
    ("number of registration", "registro"),
    ("child support", "pensión alimenticia"),
    ("arrest warrant", "orden de aprehensión"),
    ("statute of limitations", "prescripción"),
    ("pretrial detention", "prisión preventiva"),
    ("preventive detention", "prisión preventiva"),
    ("moral damages", "daño moral"),
    ("burden of proof", "carga de la prueba"),
    ("self defense", "legítima defensa"),
    ("legitimate interest", "interés legítimo"),
    ("bad faith", "mala fe"),
    ("money transfers", "transferencias electrónicas"),
    ("wire transfer", "transferencia electrónica"),
    ("what year", "qué año"),
    ("which year", "qué año"),
    ("which court", "qué sala"),
    ("what court", "qué sala"),
    ("case law", "jurisprudencia"),
    ("transfers", "transferencias electrónicas"),
    ("transfer", "transferencia electrónica"),
    ("banks", "bancos"),
    ("bank", "banco"),
    ("authorized", "autorizadas"),
    ("unauthorized", "no autorizadas"),
    ("cases", "tesis"),
    ("case", "tesis"),
    ("rulings", "tesis"),
    ("ruling", "tesis"),
    ("precedents", "precedentes"),
    ("precedent", "precedente"),
    ("binding", "obligatoria"),
    ("alimony", "alimentos"),
    ("dismissal", "despido"),
    ("dismissed", "despido"),
    ("fired", "despido"),
    ("unfair", "injustificado"),
    ("unjustified", "injustificado"),
    ("pregnant", "embarazada"),
    ("worker", "trabajador"),
    ("employee", "trabajador"),
    ("employer", "patrón"),
    ("wages", "salarios"),
    ("injunction", "suspensión"),
    ("custody", "custodia"),
    ("children", "menores"),
    ("child", "menor"),
    ("divorce", "divorcio"),
    ("taxes", "fiscal"),
    ("tax", "fiscal"),
    ("invoices", "facturas"),
    ("invoice", "factura"),
    ("evidence", "prueba"),
    ("proof", "prueba"),
    ("judge", "juez"),
    ("first", "primera"),
    ("second", "segunda"),
    ("third", "tercera"),
    ("explain", "explica"),
    ("say", "dice"),
    ("says", "dice"),
    ("another", "otra"),
];

/// Returns a message with its English legal terms in Spanish and without English function words; `None` if the message is not in English.
pub(crate) fn translated(message: &str) -> Option<String> {
    let folded = fold_text(message);
    let words: Vec<&str> = folded.split_whitespace().collect();
    let is_function = |word: &&str| FUNCTION_WORDS.contains(word);
    if words.iter().filter(|word| is_function(word)).count() < MIN_ENGLISH || !References::of(message).is_empty() {
        return None;
    }
    let mut text = format!(" {} ", words.join(" "));
    for (english, spanish) in TERMS {
        text = text.replace(&format!(" {english} "), &format!(" {spanish} "));
    }
    let kept: Vec<&str> = text
        .split_whitespace()
        .map(|word| match word {
            "what" | "which" => "qué",
            "who" => "quién",
            "not" => "no",
            "of" => "de",
            word => word,
        })
        .filter(|word| !is_function(word))
        .collect();
    Some(kept.join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn english_terms_are_translated_in_english_messages() {
        for (message, expected) in [
            ("what is number of register please", Some("qué registro")),
            ("I need case about unfair dismissal", Some("i tesis injustificado despido")),
            ("is it binding?", Some("obligatoria")),
            ("¿es binding?", None),
            ("tesis sobre el banco", None),
            ("en the office", None),
        ] {
            assert_eq!(translated(message).as_deref(), expected, "{message}");
        }
    }
}
