//! Messages that ask for no research: courtesies, questions about the assistant, other tasks, inventions, and what is about neither law nor sources.

use threadkeep::core::text::content_terms;

use super::{Words, is_function};
use crate::intent::vocabulary::{Vocabulary, is_answer_word, is_follow_up_word};
use crate::intent::words::{
    ASKING, CLOSING, COURTESY, COURTESY_CORE, FAREWELLS, GIVE, IMPERATIVES, LEGAL, NOUNS, OTHER_TASKS, SEARCH,
    SUBJECTLESS, is_ordinary,
};

/// The maximum number of words in thanks with a remark.
const MAX_REMARK: usize = 9;

impl Words {
    pub(in crate::intent) fn is_courtesy(&self) -> bool {
        if self.words.is_empty() {
            return true;
        }
        let all =
            self.words.iter().all(|word| COURTESY.contains(&word.as_str()) || COURTESY_CORE.contains(&word.as_str()));
        let joined = self.joined();
        let asks_after = ["como estas", "como esta usted", "como te va", "como le va", "que tal", "como andas"];
        let core = self.words.iter().any(|word| COURTESY_CORE.contains(&word.as_str()))
            || asks_after.iter().any(|phrase| joined.contains(&format!(" {phrase} ")));
        if joined.contains(" de que va ") || joined.contains(" por que ") {
            return false;
        }
        // `No me quedó claro` is a question.
        let is_denial = self.words.len() > 1
            && self.at(0) == "no"
            && !joined.contains(" gracias ")
            && !joined.contains(" nada mas ");
        all && core && !is_denial
    }

    /// `¿qué sabes hacer?`, `hola, qué es esto`.
    pub(in crate::intent) fn asks_about_assistant(&self) -> bool {
        let joined = self.joined();
        let asks = [
            "que puedo preguntar",
            "que te puedo preguntar",
            "que puedes hacer",
            "que sabes hacer",
            "que haces",
            "para que sirves",
            "para que sirve esto",
            "quien eres",
            "que eres",
            "como funcionas",
            "como funciona esto",
            "que es esto",
            "q es esto",
            "en que me puedes ayudar",
            "en que puedes ayudar",
            "como te llamas",
            "que hora es",
            "que dia es",
            "cuentame de ti",
            "cuentame de tu vida",
            "quien te programo",
            "quien te hizo",
            "eres un robot",
            "eres humano",
            "eres una ia",
        ];
        self.words.len() <= 7 && asks.iter().any(|phrase| joined.contains(&format!(" {phrase}")))
    }

    /// Whether the message is thanks or a farewell with a remark, and without a question or request: `excelente, me sirvió mucho`.
    pub(in crate::intent) fn is_thanks_with_remark(&self, vocabulary: &Vocabulary) -> bool {
        let joined = self.joined();
        let is_closing =
            |word: &String| CLOSING.contains(&word.as_str()) || word.starts_with("jaja") || word.starts_with("jeje");
        let asks = self.words.iter().enumerate().any(|(index, word)| {
            // `Un saludo y mi agradecimiento`, `que tenga buena tarde` ask nothing.
            let joins_thanks =
                word == "y" && (self.is(index + 1, &["mi", "mis"]) || is_closing(&self.at(index + 1).to_owned()));
            let wishes =
                ["tenga", "tengas", "pase", "pases", "este", "estes", "descanse", "descanses", "dios", "le", "te"];
            let is_wish = word == "que" && self.is(index + 1, &wishes);
            ASKING.contains(&word.as_str()) && !joins_thanks && !is_wish
                || SEARCH.contains(&word.as_str())
                || GIVE.contains(&word.as_str())
                || IMPERATIVES.contains(&word.as_str())
                || is_answer_word(word)
                || NOUNS.contains(&word.as_str())
        });
        // `Qué crack, gracias`
        let is_exclamation = self.at(0) == "que" && self.words.len() <= 4 && joined.ends_with(" gracias ");
        self.words.len() <= MAX_REMARK
            && (self.words.iter().any(is_closing)
                || FAREWELLS.iter().any(|phrase| joined.contains(&format!(" {phrase} "))))
            && vocabulary.legal.iter().all(|word| self.is_in_farewell(word))
            && (!asks || is_exclamation)
            && self.attached_pronoun().is_none()
    }

    /// Whether a word belongs to a phrase that closes a conversation: `quedo en deuda`.
    fn is_in_farewell(&self, word: &str) -> bool {
        let joined = self.joined();
        FAREWELLS
            .iter()
            .any(|phrase| phrase.split(' ').any(|own| own == word) && joined.contains(&format!(" {phrase} ")))
    }

    /// Whether the message asks to invent a source: `invéntala, ponle un registro cualquiera`.
    pub(in crate::intent) fn asks_to_invent(&self) -> bool {
        let asks = ["inventa", "inventas", "inventate", "inventame", "invente", "inventes", "inventemela", "inventar"];
        self.words.iter().any(|word| {
            let verb = ["las", "los", "la", "lo", "telas", "tela", "melas", "mela"]
                .iter()
                .find_map(|pronoun| word.strip_suffix(pronoun))
                .unwrap_or(word);
            asks.contains(&verb) || asks.contains(&word.as_str())
        })
    }

    /// Whether the message asks for something that is no legal research, whatever words of the topic it contains: a poem, a sum, a
    /// recommended bank.
    pub(in crate::intent) fn asks_other_task(&self, vocabulary: &Vocabulary) -> bool {
        let is_other = |index: usize| OTHER_TASKS.contains(&self.at(index));
        let makes = [
            "haces",
            "hazme",
            "haz",
            "cuentame",
            "escribe",
            "escribeme",
            "dame",
            "resuelves",
            "resuelveme",
            "ayudas",
            "pedir",
            "pides",
            "pideme",
        ];
        let asks_for_task = vocabulary.legal.is_empty()
            && (0..self.words.len()).any(|verb| self.is(verb, &makes) && (verb + 1..verb + 6).any(is_other));
        let is_number = |index: usize| !self.at(index).is_empty() && self.at(index).chars().all(|c| c.is_ascii_digit());
        let operators = ["entre", "por", "mas", "menos", "x"];
        let is_sum = self.joined().contains(" cuanto es ")
            && (1..self.words.len())
                .any(|index| self.is(index, &operators) && is_number(index - 1) && is_number(index + 1));
        asks_for_task || is_sum || self.asks_for_product() || self.asks_everyday_fact(vocabulary)
    }

    /// Whether the message asks for a fact of everyday life, which no legal source states: the weather, a result, a price.
    fn asks_everyday_fact(&self, vocabulary: &Vocabulary) -> bool {
        let joined = self.joined();
        let has = |phrases: &[&str]| phrases.iter().any(|phrase| joined.contains(&format!(" {phrase} ")));
        let asks_degrees = has(&["cuantos grados", "que temperatura", "que clima"])
            && has(&["hay", "hace", "hizo", "estan", "estamos", "hara", "hoy", "manana"]);
        asks_degrees
            || has(&["como quedo el partido", "el partido de ayer", "el partido de hoy"])
            || vocabulary.legal.is_empty()
                && has(&[
                    "va a llover",
                    "esta lloviendo",
                    "el clima",
                    "pronostico del tiempo",
                    "tipo de cambio",
                    "precio del dolar",
                    "a como esta el dolar",
                    "a como amanecio el dolar",
                    "cuanto esta el dolar",
                    "quien gano el",
                    "quien gano la",
                    "quien va ganando",
                    "a que hora juega",
                    "como quedo el partido",
                    "el marcador",
                    "que pelicula",
                    "que serie",
                    "la capital de",
                ])
    }

    /// Whether the message asks to recommend something other than law or sources: `¿qué banco me recomiendas?`
    fn asks_for_product(&self) -> bool {
        let Some(verb) = self.words.iter().position(|word| word.starts_with("recomi") || word.starts_with("recomend"))
        else {
            return false;
        };
        let named = (0..self.words.len()).find(|index| {
            *index < verb && self.is(*index, &["que", "cual"]) && *index + 3 >= verb
                || *index > verb && self.is(*index, &["un", "una", "algun", "alguna"]) && *index <= verb + 2
        });
        let Some(noun) = named.map(|index| self.at(index + 1)) else { return false };
        // Legal terms that also name someone who sells a service.
        let serves = ["banco", "bancos", "abogado", "abogada", "notario", "aseguradora", "despacho"].contains(&noun);
        let is_law = LEGAL.contains(&noun) && !serves;
        noun.len() > 3 && !is_law && (serves || !is_follow_up_word(noun) && !is_answer_word(noun) && !is_function(noun))
    }

    /// Whether the message is about neither law nor the sources: `¿quién ganó el mundial?`, `¿cuánto es 345 por 12?`
    pub(in crate::intent) fn is_off_topic(&self, vocabulary: &Vocabulary, has_sources: bool) -> bool {
        let numbers = self.words.iter().filter(|word| word.chars().all(|c| c.is_ascii_digit())).count();
        let is_sum = numbers >= 2
            && content_terms(&self.words.join(" "))
                .iter()
                .all(|(word, _)| word.chars().all(|c| c.is_ascii_digit()) || is_ordinary(word) || word.len() < 4);
        let asks = [
            "como", "cuanto", "cuanta", "cuantos", "cuantas", "cuando", "que", "por", "a", "en", "con", "ante",
            "desde", "hasta", "alguna", "algun", "hay",
        ];
        // A single word that is not in the lists may belong to the topic: `¿cómo se calcula la lana?`
        let is_introduced = (1..self.words.len()).any(|index| {
            self.is(index - 1, &["un", "una"]) && vocabulary.unknown.iter().any(|word| word == self.at(index))
        });
        let is_about_sources = has_sources
            && vocabulary.unknown.len() == 1
            && self.is(0, &asks)
            && !is_introduced
            && !self.joined().contains(" como esta ")
            && !self.joined().contains(" cuanto esta ");
        let is_elliptic = self.is(0, &["y", "o", "pero", "tambien", "tampoco", "incluso", "aunque"])
            || self.is(0, &SUBJECTLESS)
            || is_about_sources;
        let is_own_task = vocabulary.is_about_law || has_sources && self.asks_format();
        !is_own_task && (is_sum || !vocabulary.unknown.is_empty() && !is_elliptic)
    }
}
