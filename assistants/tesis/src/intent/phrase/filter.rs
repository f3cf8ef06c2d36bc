//! Messages that state a filter, or that select or reject a source.

use super::Words;
use crate::filters;
use crate::intent::words::{IMPERATIVES, SEARCH};

impl Words {
    /// Whether the message states a filter for a search, rather than a question about a source: `¿es de la Décima Época?`
    pub(in crate::intent) fn states_filter(&self, message: &str) -> bool {
        let found = filters::split(message);
        if found.filters.is_empty() {
            return false;
        }
        let asks_about =
            ["es", "son", "era", "fue", "emitio", "emitieron", "dicto", "que", "cual", "aplica", "obliga", "pertenece"];
        let is_question = asks_about.iter().any(|word| self.words.iter().any(|own| own == word));
        let joined = self.joined();
        let is_request = [
            "solo ",
            "solamente ",
            "unicamente ",
            "que sea",
            "que si sea",
            "que no sea",
            "nada mas ",
            "nomas ",
            " misma epoca ",
            " misma materia ",
            "filtra",
            "limita",
            "restringe",
            "acota",
            "quita",
            "excluye",
            "descarta",
            "elimina",
            " que hay ",
            " que tienes ",
            " que tiene ",
            " que traes ",
            " que manejas ",
            " hay algo ",
        ]
        .iter()
        .any(|word| joined.contains(word));
        // `¿Y aisladas en ese tema?` refers to the topic rather than to a source.
        let keeps_topic = [
            " ese tema ",
            " ese mismo tema ",
            " este tema ",
            " este mismo tema ",
            " ese asunto ",
            " esa materia ",
            " eso mismo ",
        ]
        .iter()
        .any(|phrase| joined.contains(phrase));
        is_request || !is_question && (keeps_topic || !self.points_back()) && !self.selects_one_source()
    }

    /// Whether the message restricts what was shown: `nada más las de la Segunda Sala`.
    pub(in crate::intent) fn restricts(&self) -> bool {
        let joined = self.joined();
        let phrases = [
            "solo las ",
            "nada mas las ",
            "nomas las ",
            "unicamente las ",
            "solamente las ",
            "descarta",
            "excluye",
            "quita",
        ];
        let asks = ["que", "cual", "quien", "cuando"].iter().any(|word| self.words.iter().any(|own| own == word));
        !asks && phrases.iter().any(|phrase| joined.contains(&format!(" {phrase}")))
    }

    /// Whether the message rejects a source: `esa no me sirve`, `mejor no uso esa`.
    pub(in crate::intent) fn rejects_source(&self) -> bool {
        let joined = self.joined();
        let phrases = [
            "esa no me sirve",
            "esa no sirve",
            "esa no es",
            "esa ya no",
            "no uso esa",
            "no usare esa",
            "no quiero esa",
            "no me sirve esa",
            "esa no la quiero",
            "esa no la uso",
        ];
        phrases.iter().any(|phrase| joined.contains(&format!(" {phrase} ")))
    }

    /// Whether a message selects one source by a filter: `cítame la del Pleno`, `la de penal`.
    pub(in crate::intent) fn selects_one_source(&self) -> bool {
        let before = ["", "y", "vez", "solo", "solamente", "unicamente", "mejor", "ok", "bueno", "ahora", "entonces"];
        (0..self.words.len()).any(|index| {
            let previous = self.at(index.wrapping_sub(1));
            let is_request = IMPERATIVES.contains(&previous)
                || previous.len() > 4 && previous.ends_with("me") && !SEARCH.contains(&previous);
            let name = format!(
                "{} {}",
                self.at(index + 1),
                self.words[(index + 2).min(self.words.len())..].iter().take(3).cloned().collect::<Vec<_>>().join(" ")
            );
            self.at(index) == "la"
                && self.is(index + 1, &["de", "del"])
                && (is_request || before.contains(&previous) || index == 0)
                && !filters::split(&format!("la {name}")).filters.is_empty()
        })
    }
}
