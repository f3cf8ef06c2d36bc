//! Messages that continue the last answer: in another form, with what else it says, or with the opposite of its topic.

use super::Words;
use crate::clave::fold_text;
use crate::intent::PastMessage;
use crate::intent::words::{NOUNS, is_opposite};

/// Forms of an answer, words for their size, and phrases that ask for a short or plain one.
const FORMATS: [&str; 22] = [
    "lista",
    "listado",
    "tabla",
    "tablita",
    "cuadro",
    "esquema",
    "puntos",
    "vinetas",
    "incisos",
    "frase",
    "frases",
    "oracion",
    "oraciones",
    "renglon",
    "renglones",
    "linea",
    "lineas",
    "parrafo",
    "parrafos",
    "palabras",
    "cristiano",
    "resumen",
];
const FORMAT_SIZES: [&str; 15] = [
    "una", "un", "uno", "dos", "tres", "cuatro", "cinco", "pocas", "pocos", "sola", "solo", "mas", "menos", "forma",
    "de",
];
const FORMAT_PHRASES: [&str; 8] = [
    "en corto",
    "al grano",
    "mas corto",
    "mas breve",
    "sin rollo",
    "sin rollos",
    "con peras y manzanas",
    "con manzanitas",
];

impl Words {
    /// Whether the message continues with the opposite of what the last question named: `¿y el directo contra qué procede?`
    pub(in crate::intent) fn names_opposite(&self, history: &[PastMessage]) -> bool {
        let Some(question) = history.iter().rev().find(|message| message.is_user) else { return false };
        let folded = fold_text(&question.text);
        let own: Vec<&str> = self.words.iter().map(String::as_str).collect();
        let is_continued = self.is(0, &["y", "pero", "e"]) && self.words.len() > 2 && !self.is(1, &["es", "si"]);
        is_continued
            && folded
                .split_whitespace()
                .any(|word| !["aislada", "jurisprudencia"].contains(&word) && is_opposite(word, &own))
    }

    /// Whether the message asks what else the source contains: `¿qué otro supuesto contempla?`
    pub(in crate::intent) fn asks_what_else(&self) -> bool {
        let start = usize::from(self.is(0, &["y"]));
        self.is(start, &["que", "cual", "cuales"])
            && self.is(start + 1, &["otro", "otra", "otros", "otras"])
            && !self.is(start + 2, &NOUNS)
            && self.words.len() > start + 2
    }

    /// Whether the message asks for the answer in another form: `todos los factores, en lista`, `en una sola frase`.
    pub(in crate::intent) fn asks_format(&self) -> bool {
        (0..self.words.len()).any(|index| {
            let sizes =
                self.words[index + 1..].iter().take(3).take_while(|word| FORMAT_SIZES.contains(&word.as_str())).count();
            self.is(index, &["en", "por", "como", "con"]) && self.is(index + 1 + sizes, &FORMATS)
        }) || FORMAT_PHRASES.iter().any(|phrase| self.joined().contains(&format!(" {phrase} ")))
    }
}
