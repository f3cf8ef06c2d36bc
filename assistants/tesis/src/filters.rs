//! Filters that a question states in words: época, type, subject, court and years.

use serde::{Deserialize, Serialize};
use threadkeep::core::FieldFilter;

use crate::clave::fold_text;
use crate::epoca;
use crate::record::{Tesis, court_slug, materia_slug};

/// The first year of the Semanario Judicial.
const FIRST_YEAR: i64 = 1871;
/// A year after which there are no tesis: the end of open year ranges.
const LAST_YEAR: i64 = 2060;

/// Conditions on tesis.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Filters {
    /// One of these épocas.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub epocas: Vec<u8>,
    /// `Jurisprudencia` or `Aislada`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tipo: Option<String>,
    /// One of these subjects, folded: `penal`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub materias: Vec<String>,
    /// One of these courts: `primera_sala`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub instancias: Vec<String>,
    /// First and last year.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub years: Option<(i64, i64)>,
}

/// A question split into filters and other words.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct SplitQuestion {
    pub(crate) filters: Filters,
    /// The words of the question outside of filters, as typed.
    pub(crate) rest: String,
}

impl Filters {
    /// Whether there are no conditions.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Whether a tesis passes the filters.
    #[must_use]
    pub fn passes(&self, tesis: &Tesis) -> bool {
        let court = tesis.instancia.as_deref().map(court_slug).unwrap_or_default();
        let materias: Vec<String> = tesis.materias.iter().map(|materia| materia_slug(materia)).collect();
        (self.epocas.is_empty() || tesis.epoca.is_some_and(|epoca| self.epocas.contains(&epoca)))
            && self.tipo.as_deref().is_none_or(|tipo| tesis.tipo.is_some_and(|own| own.name() == tipo))
            && (self.materias.is_empty() || self.materias.iter().any(|materia| materias.contains(materia)))
            && (self.instancias.is_empty() || self.instancias.contains(&court))
            && self.years.is_none_or(|(first, last)| tesis.anio.is_some_and(|year| (first..=last).contains(&year)))
    }

    /// Returns the conditions for the index.
    #[must_use]
    pub fn to_query(&self) -> Vec<FieldFilter> {
        let mut filters = Vec::new();
        if !self.epocas.is_empty() {
            filters.push(FieldFilter::any("epoca", self.epocas.iter().copied()));
        }
        if let Some(tipo) = &self.tipo {
            filters.push(FieldFilter::equal("tipo", tipo.as_str()));
        }
        if !self.materias.is_empty() {
            filters.push(FieldFilter::any("materias", self.materias.iter().map(String::as_str)));
        }
        if !self.instancias.is_empty() {
            filters.push(FieldFilter::any("instancia", self.instancias.iter().map(String::as_str)));
        }
        if let Some((first, last)) = self.years {
            filters.push(FieldFilter::any("anio", first.max(FIRST_YEAR)..=last.min(LAST_YEAR)));
        }
        filters
    }

    /// Returns these filters combined with those of a later question, which replace filters of the same kind.
    #[must_use]
    pub fn merged(&self, later: &Self) -> Self {
        let choose = |own: &[String], later: &[String]| if later.is_empty() { own.to_vec() } else { later.to_vec() };
        Self {
            epocas: if later.epocas.is_empty() { self.epocas.clone() } else { later.epocas.clone() },
            tipo: later.tipo.clone().or_else(|| self.tipo.clone()),
            materias: choose(&self.materias, &later.materias),
            instancias: choose(&self.instancias, &later.instancias),
            years: later.years.or(self.years),
        }
    }

    /// Describes the filters: `Undécima Época, Jurisprudencia`.
    #[must_use]
    pub fn describe(&self) -> String {
        let excluded: Vec<u8> = (FIRST_EPOCA..=LAST_EPOCA).filter(|epoca| !self.epocas.contains(epoca)).collect();
        let mut parts: Vec<String> = match excluded.as_slice() {
            [epoca] => vec![format!("sin la {}", epoca::name(*epoca))],
            _ => self.epocas.iter().map(|epoca| epoca::name(*epoca)).collect(),
        };
        parts.extend(self.tipo.clone());
        let excluded: Vec<&str> =
            ALL_MATERIAS.into_iter().filter(|materia| !self.materias.iter().any(|own| own == materia)).collect();
        match excluded.as_slice() {
            [materia] => parts.push(format!("sin materia {materia}")),
            _ => parts.extend(self.materias.iter().map(|materia| format!("materia {materia}"))),
        }
        let excluded: Vec<&str> =
            ALL_COURTS.into_iter().filter(|court| !self.instancias.iter().any(|own| own == court)).collect();
        match excluded.as_slice() {
            [court] => parts.push(format!("sin {}", court.replace('_', " "))),
            _ => parts.extend(self.instancias.iter().map(|court| court.replace('_', " "))),
        }
        parts.extend(self.years.map(|(first, last)| match (first, last) {
            (first, LAST_YEAR) => format!("desde {first}"),
            (FIRST_YEAR, last) => format!("hasta {last}"),
            (first, last) if first == last => format!("año {first}"),
            (first, last) => format!("de {first} a {last}"),
        }));
        parts.join(", ")
    }
}

/// The range of épocas whose tesis still apply.
const FIRST_EPOCA: u8 = 5;
const LAST_EPOCA: u8 = 12;

/// The courts whose tesis the corpus contains.
const ALL_COURTS: [&str; 6] =
    ["pleno", "primera_sala", "segunda_sala", "plenos_regionales", "plenos_de_circuito", "tribunales_colegiados"];

/// Words that exclude what follows.
const EXCLUSIONS: [&str; 15] = [
    "excluye",
    "excluyendo",
    "quita",
    "quitando",
    "descarta",
    "descartando",
    "elimina",
    "menos",
    "excepto",
    "salvo",
    "excluya",
    "quite",
    "descarte",
    "elimine",
    "omite",
];

/// The subjects, of which a filter can exclude some.
const ALL_MATERIAS: [&str; 7] = ["administrativa", "civil", "comun", "constitucional", "laboral", "mercantil", "penal"];

const MATERIAS: [(&str, &str); 18] = [
    ("familia", "civil"),
    ("penal", "penal"),
    ("civil", "civil"),
    ("familiar", "civil"),
    ("laboral", "laboral"),
    ("trabajo", "laboral"),
    ("administrativa", "administrativa"),
    ("fiscal", "administrativa"),
    ("tributaria", "administrativa"),
    ("mercantil", "mercantil"),
    ("comercial", "mercantil"),
    ("constitucional", "constitucional"),
    ("comun", "comun"),
    ("penales", "penal"),
    ("civiles", "civil"),
    ("laborales", "laboral"),
    ("administrativas", "administrativa"),
    ("mercantiles", "mercantil"),
];

/// Splits a question into filters and other words.
pub(crate) fn split(question: &str) -> SplitQuestion {
    let typed: Vec<&str> = question.split_whitespace().collect();
    let folded: Vec<String> = typed.iter().map(|word| fold_text(word).trim().to_owned()).collect();
    let mut reader = Reader {
        words: folded.iter().map(String::as_str).collect(),
        ends_part: typed.iter().map(|word| word.ends_with([',', ';', ':', '.', '?', '!'])).collect(),
        used: vec![false; typed.len()],
        filters: Filters::default(),
        excluded_court_end: None,
    };
    for at in 0..typed.len() {
        reader.epoca(at);
        reader.tipo(at);
        reader.materia(at);
        reader.court(at);
        reader.years(at);
    }
    let rest: Vec<&str> = typed.iter().zip(&reader.used).filter(|(_, used)| !**used).map(|(word, _)| *word).collect();
    SplitQuestion { filters: reader.filters, rest: rest.join(" ") }
}

struct Reader<'a> {
    words: Vec<&'a str>,
    /// Whether a comma or another mark ends the part of the message at each word.
    ends_part: Vec<bool>,
    used: Vec<bool>,
    filters: Filters,
    /// Where the words of the last excluded court end.
    excluded_court_end: Option<usize>,
}

impl Reader<'_> {
    fn word(&self, at: usize) -> &str {
        self.words.get(at).copied().unwrap_or_default()
    }

    fn before(&self, at: usize, back: usize) -> &str {
        at.checked_sub(back).map_or("", |at| self.word(at))
    }

    fn mark(&mut self, from: usize, to: usize) {
        let end = self.used.len();
        self.used[from.min(end)..to.min(end)].fill(true);
    }

    /// Marks the words before a filter that only connect it to the rest: `de la`, `en`.
    fn mark_connectors(&mut self, mut at: usize) {
        while at > 0
            && [
                "de",
                "la",
                "las",
                "el",
                "los",
                "en",
                "del",
                "por",
                "emitida",
                "emitidas",
                "publicada",
                "publicadas",
                "publicado",
                "publicados",
                "dictada",
                "dictadas",
                "sean",
                "q",
                "sea",
                "que",
                "solo",
                "solamente",
                "unicamente",
                "clasificada",
                "clasificadas",
                "clasificado",
                "clasificados",
                "tesis",
            ]
            .contains(&self.word(at - 1))
        {
            at -= 1;
            if self.word(at) == "tesis" {
                break;
            }
            self.used[at] = true;
        }
    }

    fn epoca(&mut self, at: usize) {
        let is_epoca = ["epoca", "epocas"].contains(&self.word(at + 1));
        // No court has such a number: `las de la Undécima`.
        let is_name = ["novena", "decima", "undecima", "duodecima"].contains(&self.word(at))
            && (["la", "igual", "misma"].contains(&self.before(at, 1)) || self.is_alone(at));
        if let Some(epoca) = epoca::parse(self.word(at)).filter(|_| is_epoca || is_name) {
            if self.is_excluded(at) || self.is_negated(at) {
                self.filters.epocas.extend((FIRST_EPOCA..=LAST_EPOCA).filter(|other| *other != epoca));
            } else if !self.filters.epocas.contains(&epoca) {
                self.filters.epocas.push(epoca);
            }
            self.mark(at, if is_epoca { at + 2 } else { at + 1 });
            self.mark_connectors(at);
            // `Décima y Undécima Épocas`
            let earlier = at.checked_sub(2).filter(|_| ["y", "o", "u", "e"].contains(&self.before(at, 1)));
            if let Some((earlier, other)) =
                earlier.and_then(|earlier| Some((earlier, epoca::parse(self.word(earlier))?)))
            {
                if !self.filters.epocas.contains(&other) {
                    self.filters.epocas.push(other);
                }
                self.mark(earlier, at);
                self.mark_connectors(earlier);
            }
        }
    }

    fn tipo(&mut self, at: usize) {
        // `aisladas no`
        let is_negated_after = self.word(at + 1) == "no" && ["", "y", "por", "porfa"].contains(&self.word(at + 2));
        let is_negated = ["no", "sin", "excepto"].contains(&self.before(at, 1))
            || self.is_excluded(at)
            || self.before(at, 1) == "de" && self.before(at, 2) == "nada"
            // `¿Cuál no es jurisprudencia?`
            || ["es", "son"].contains(&self.before(at, 1))
                && self.before(at, 2) == "no"
                && ["cual", "cuales", "que"].contains(&self.before(at, 3))
            || ["sea", "sean"].contains(&self.before(at, 1)) && self.before(at, 2) == "no"
            || is_negated_after;
        // `¿Jurisprudencia o nada más aislada?`, `¿esa es aislada, no?` ask, and restrict nothing.
        let names = |start: &str| self.words.iter().any(|word| word.starts_with(start));
        let is_alternative = names("aislada") && names("jurisprudencia") && self.is_type_question();
        let is_tag = ["es", "era", "fue"].contains(&self.before(at, 1))
            && !["cual", "que", "si", "no"].contains(&self.before(at, 2));
        if is_alternative || is_tag {
            return;
        }
        let is_only = (1..=3).any(|back| {
            ["solo", "solamente", "unicamente", "puras", "pura", "nomas", "pero"].contains(&self.before(at, back))
        }) || ["sea", "sean"].contains(&self.before(at, 1))
            || self.word(at + 1) == "nada" && self.word(at + 2) == "mas"
            || ["nomas", "solamente", "unicamente"].contains(&self.word(at + 1));
        let asks_which = ["cual", "cuales"].contains(&self.before(at, 2))
            && !self.words.contains(&"aislada")
            && !self.words.contains(&"aisladas");
        let tipo = match self.word(at) {
            "aislada" | "aisladas" if is_negated => "Jurisprudencia",
            "aislada" | "aisladas" => "Aislada",
            "jurisprudencia" | "jurisprudencias" if is_negated => "Aislada",
            "jurisprudencias" => "Jurisprudencia",
            "jurisprudencia" if is_only || asks_which && ["es", "son"].contains(&self.before(at, 1)) => {
                "Jurisprudencia"
            }
            _ => return,
        };
        if self.filters.tipo.is_none() || self.word(at).starts_with("juris") {
            self.filters.tipo = Some(tipo.to_owned());
        }
        self.mark(at, at + 1);
        if is_negated_after {
            self.mark(at + 1, at + 2);
        } else if is_negated {
            // `no aisladas`, `que no sean aisladas`
            let start = at.saturating_sub(if ["sea", "sean"].contains(&self.before(at, 1)) { 2 } else { 1 });
            self.mark(start, at);
            self.mark_connectors(start);
        }
        self.mark_connectors(at);
    }

    /// Whether a message asks which kind of tesis something is: `¿es jurisprudencia o aislada?`
    fn is_type_question(&self) -> bool {
        let is_kind = |at: usize| {
            let word = self.word(at);
            word.starts_with("aislada") || word.starts_with("jurisprudencia")
        };
        let kinds: Vec<usize> = (0..self.words.len()).filter(|at| is_kind(*at)).collect();
        let joins = |pair: &[usize]| {
            let between = &self.words[pair[0] + 1..pair[1]];
            between.contains(&"o") || between.contains(&"u") || between.contains(&"cual") || between.contains(&"cuales")
        };
        kinds.windows(2).any(joins)
    }

    fn materia(&mut self, at: usize) {
        let find = |word: &str| MATERIAS.iter().find(|(name, _)| *name == word).map(|(_, materia)| *materia);
        let (materia, length) = match self.word(at) {
            "materia" | "materias" => (find(self.word(at + 1)), 2),
            // `¿Qué tienen en común?`
            "comun" => (None, 1),
            word => (find(word).filter(|_| self.stands_alone(at)), 1),
        };
        let Some(materia) = materia else { return };
        let is_excluded = self.is_excluded(at)
            || self.is_negated(at)
            || self.before(at, 1) == "nada"
            || self.before(at, 1) == "de" && self.before(at, 2) == "nada"
            || ["sea", "es", "sean", "son"].iter().any(|verb| {
                (1..=2).any(|back| self.before(at, back) == *verb && self.before(at, back + 1) == "no")
                    && !self.words.contains(&"cual")
            });
        if is_excluded {
            if self.filters.materias.is_empty() {
                self.filters.materias.extend(ALL_MATERIAS.map(str::to_owned));
            }
            self.filters.materias.retain(|own| own != materia);
        } else {
            self.filters.materias.push(materia.to_owned());
        }
        self.mark(at, at + length);
        self.mark_connectors(at);
    }

    /// Whether a message consists of a word, after words that only open it: `ahora 2015`.
    fn is_alone(&self, at: usize) -> bool {
        let opens = |word: &&str| ["y", "e", "ahora", "entonces", "ok", "va", "bueno", "mejor"].contains(word);
        self.words[..at].iter().all(|word| word.is_empty() || opens(word))
            && self.words[at + 1..].iter().all(|word| word.is_empty())
    }

    /// Whether `de circuito` begins at a position.
    fn circuit_follows(&self, at: usize) -> bool {
        self.word(at) == "de" && self.word(at + 1) == "circuito"
    }

    /// Whether a filter is excluded: `excluye los de la Décima`.
    fn is_excluded(&self, at: usize) -> bool {
        // `Al menos dime …` excludes nothing.
        let is_least =
            |back: usize| self.before(at, back) == "menos" && ["al", "lo"].contains(&self.before(at, back + 1));
        // `Quítame las aisladas`
        let excludes = |back: usize| {
            let word = self.before(at, back);
            EXCLUSIONS.contains(&word) || word.strip_suffix("me").is_some_and(|verb| EXCLUSIONS.contains(&verb))
        };
        (1..=4).any(|back| excludes(back) && !is_least(back))
    }

    /// Whether a filter is ruled out: `que no sea de la Segunda Sala`.
    fn is_negated(&self, at: usize) -> bool {
        (1..=3).any(|back| ["sea", "sean"].contains(&self.before(at, back)) && self.before(at, back + 1) == "no")
    }

    /// Whether only connectors separate a court from an excluded one: `menos de la Primera Sala y de la Segunda`.
    fn continues_excluded_courts(&self, at: usize) -> bool {
        let between = |end: usize| self.words.get(end..at);
        let words = self.excluded_court_end.and_then(between).unwrap_or_default();
        words.iter().any(|word| ["y", "e", "o", "ni"].contains(word))
            && words.iter().all(|word| ["y", "e", "o", "ni", "de", "la", "del", "los"].contains(word))
    }

    /// Whether an adjective modifies no noun of the topic: `¿y laborales?`, `las penales`, but not `acción penal`.
    fn stands_alone(&self, at: usize) -> bool {
        const AFTER: [&str; 19] = [
            "",
            "pero",
            "de",
            "del",
            "y",
            "por",
            "porfa",
            "en",
            "desde",
            "que",
            "posterior",
            "posteriores",
            "anterior",
            "anteriores",
            "sobre",
            "reciente",
            "recientes",
            "publicadas",
            "antes",
        ];
        const BEFORE: [&str; 22] = [
            "",
            "algo",
            "en",
            "y",
            "o",
            "entonces",
            "ahora",
            "tambien",
            "solo",
            "solamente",
            "unicamente",
            "las",
            "los",
            "tesis",
            "criterios",
            "jurisprudencia",
            "jurisprudencias",
            "aisladas",
            "mejor",
            "sea",
            "sean",
            "nada",
        ];
        let is_named = self.before(at, 1) == "de"
            && [
                "es",
                "son",
                "la",
                "las",
                "esas",
                "una",
                "otra",
                "jurisprudencia",
                "tesis",
                "algo",
                "y",
                "lo",
                "sea",
                "sean",
            ]
            .contains(&self.before(at, 2));
        // `De tribunales colegiados, laboral`, `administrativa, igual novena`
        let follows_break = at == 0 || self.ends_part[at - 1];
        (BEFORE.contains(&self.before(at, 1)) || is_named || follows_break)
            && (AFTER.contains(&self.word(at + 1)) || self.ends_part[at])
    }

    fn court(&mut self, at: usize) {
        if self.used[at] {
            return;
        }
        let is_excluded = self.is_excluded(at) || self.is_negated(at) || self.continues_excluded_courts(at);
        let (court, length): (&[&str], usize) = match (self.word(at), self.word(at + 1)) {
            ("primera", "sala") | ("1a", "sala") => (&["primera_sala"], 2),
            ("segunda", "sala") | ("2a", "sala") => (&["segunda_sala"], 2),
            ("plenos" | "pleno", "regionales" | "regional") => (&["plenos_regionales"], 2),
            ("plenos" | "pleno", "de") if self.word(at + 2) == "circuito" => (&["plenos_de_circuito"], 3),
            ("tribunales" | "tribunal", "colegiados" | "colegiado") => {
                (&["tribunales_colegiados"], if self.circuit_follows(at + 2) { 4 } else { 2 })
            }
            ("colegiados", _) if ["", "y", "de", "los", "en"].contains(&self.before(at, 1)) => {
                (&["tribunales_colegiados"], if self.circuit_follows(at + 1) { 3 } else { 1 })
            }
            ("pleno", "de")
                if self.word(at + 2) == "la" && ["corte", "scjn", "suprema"].contains(&self.word(at + 3)) =>
            {
                (&["pleno"], if self.word(at + 3) == "suprema" { 5 } else { 4 })
            }
            ("suprema", "corte") => (&["pleno", "primera_sala", "segunda_sala"], 2),
            ("scjn", _) => (&["pleno", "primera_sala", "segunda_sala"], 1),
            ("pleno", _) if ["del", "el"].contains(&self.before(at, 1)) => (&["pleno"], 1),
            _ => return,
        };
        let courts = &mut self.filters.instancias;
        if is_excluded {
            self.excluded_court_end = Some(at + length);
            if courts.is_empty() {
                courts.extend(ALL_COURTS.map(str::to_owned));
            }
            courts.retain(|own| !court.contains(&own.as_str()));
        } else {
            courts.extend(court.iter().map(|court| (*court).to_owned()));
        }
        self.mark(at, at + length);
        self.mark_connectors(at);
    }

    fn years(&mut self, at: usize) {
        let year = |word: &str| word.parse::<i64>().ok().filter(|year| (1900..=2059).contains(year));
        let Some(first) = year(self.word(at)).filter(|_| !self.used[at]) else { return };
        let (one, two) = (self.before(at, 1), self.before(at, 2));
        let onwards = self.word(at + 1) == "en" && self.word(at + 2) == "adelante"
            || ["a", "hasta"].contains(&self.word(at + 1)) && ["la", "hoy"].contains(&self.word(at + 2))
            || ["para", "pa"].contains(&self.word(at + 1))
                && ["aca", "delante", "adelante"].contains(&self.word(at + 2));
        let (years, from, to) = match (one, two) {
            _ if onwards => {
                ((first, LAST_YEAR), at.saturating_sub(1), at + if self.word(at + 2) == "la" { 4 } else { 3 })
            }
            ("desde", _) => ((first, LAST_YEAR), at - 1, at + 1),
            ("el", "desde") => ((first, LAST_YEAR), at - 2, at + 1),
            ("de" | "del", "partir") => ((first, LAST_YEAR), at.saturating_sub(3), at + 1),
            ("a" | "al", "posterior" | "posteriores") => ((first + 1, LAST_YEAR), at - 2, at + 1),
            ("de" | "del", "despues") => ((first + 1, LAST_YEAR), at - 2, at + 1),
            ("a" | "al", "anterior" | "anteriores") => ((FIRST_YEAR, first - 1), at - 2, at + 1),
            ("de" | "del", "antes") => ((FIRST_YEAR, first - 1), at - 2, at + 1),
            ("hasta", _) => ((FIRST_YEAR, first), at - 1, at + 1),
            ("entre", _) | ("de", _)
                if ["y", "a"].contains(&self.word(at + 1)) && year(self.word(at + 2)).is_some() =>
            {
                let last = year(self.word(at + 2)).unwrap_or(first);
                ((first.min(last), first.max(last)), at - 1, at + 3)
            }
            ("ano", _) | ("anos", _) | ("de" | "del" | "en", _) if !self.before(at, 3).starts_with("artic") => {
                ((first, first), at - 1, at + 1)
            }
            _ if self.is_alone(at) => ((first, first), at, at + 1),
            _ => return,
        };
        self.filters.years = Some(years);
        self.mark(from, to);
        self.mark_connectors(from);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(question: &str, expected: Filters, rest: &str) {
        let found = split(question);
        assert_eq!((&found.filters, found.rest.as_str()), (&expected, rest), "{question}");
    }

    #[test]
    fn filters_are_read_from_words() {
        let none = Filters::default;
        let penal = || vec!["penal".to_owned()];
        check("búscame algo de la Novena Época", Filters { epocas: vec![9], ..none() }, "búscame algo");
        check("¿y en la Décima Época?", Filters { epocas: vec![10], ..none() }, "¿y");
        let both = Filters { epocas: vec![10, 11], ..none() };
        check("tesis de la Décima y Undécima Épocas sobre amparo", both, "tesis sobre amparo");
        let binding = || Filters { tipo: Some("Jurisprudencia".to_owned()), ..none() };
        check("sólo jurisprudencia, no aisladas", binding(), "");
        check("jurisprudencias sobre despido", binding(), "sobre despido");
        check("Busca jurisprudencia sobre suspensión", none(), "Busca jurisprudencia sobre suspensión");
        check(
            "tesis aisladas de 2023",
            Filters { tipo: Some("Aislada".to_owned()), years: Some((2023, 2023)), ..none() },
            "tesis",
        );
        check("despido de 2023 en adelante", Filters { years: Some((2023, LAST_YEAR)), ..none() }, "despido");
        check("despido a partir de 2023", Filters { years: Some((2023, LAST_YEAR)), ..none() }, "despido");
        check("despido posteriores a 2022", Filters { years: Some((2023, LAST_YEAR)), ..none() }, "despido");
        check("despido antes de 2010", Filters { years: Some((FIRST_YEAR, 2009)), ..none() }, "despido");
        check("despido entre 2015 y 2020", Filters { years: Some((2015, 2020)), ..none() }, "despido");
        check(
            "materia penal antes del 2010",
            Filters { materias: penal(), years: Some((FIRST_YEAR, 2009)), ..none() },
            "",
        );
        check("entonces penales de la Décima", Filters { materias: penal(), epocas: vec![10], ..none() }, "entonces");
        check("prescripción de la acción penal", none(), "prescripción de la acción penal");
        let recent = Filters { materias: vec!["laboral".to_owned()], years: Some((2021, LAST_YEAR)), ..none() };
        check("jurisprudencia laboral posterior a 2020", recent, "jurisprudencia");
        check("sobre despido, que no sean aisladas", binding(), "sobre despido,");
        check("tesis de alimentos, aisladas no", binding(), "tesis de alimentos,");
        check("otra sobre despido, pero jurisprudencia", binding(), "otra sobre despido, pero");
        let isolated = || Filters { tipo: Some("Aislada".to_owned()), ..none() };
        check("descarta las aisladas", binding(), "descarta");
        check("esa es aislada, ¿no?", none(), "esa es aislada, ¿no?");
        check("¿cuál es jurisprudencia y cuál aislada?", none(), "¿cuál es jurisprudencia y cuál aislada?");
        check("jurisprudencia nada más", binding(), "nada más");
        check("¿cuál no es jurisprudencia?", isolated(), "¿cuál no");
        check("nada de aisladas", binding(), "nada");
        let other_than_penal = split("suspensión, pero nada penal").filters;
        assert_eq!(other_than_penal.describe(), "sin materia penal");
        check("¿qué tienen en común?", none(), "¿qué tienen en común?");
        check("al menos dime qué jurisprudencia hay", none(), "al menos dime qué jurisprudencia hay");
        check(
            "¿administrativa, igual novena?",
            Filters { materias: vec!["administrativa".to_owned()], epocas: vec![9], ..none() },
            "igual",
        );
        check("una que sea penal", Filters { materias: penal(), ..none() }, "una");
        check("despido de 2020 para acá", Filters { years: Some((2020, LAST_YEAR)), ..none() }, "despido");
        check("¿jurisprudencia o aislada?", none(), "¿jurisprudencia o aislada?");
        check("¿2024?", Filters { years: Some((2024, 2024)), ..none() }, "");
        check("ahora 2015", Filters { years: Some((2015, 2015)), ..none() }, "ahora");
        check(
            "Búscame algo penal pero de la Novena",
            Filters { materias: penal(), epocas: vec![9], ..none() },
            "Búscame algo pero",
        );
        let without_second = split("materia laboral, pero que no sea de la Segunda Sala").filters;
        assert_eq!(without_second.describe(), "materia laboral, sin segunda sala");
        let courts = |question: &str| split(question).filters.instancias;
        assert_eq!(
            courts("despido, menos de la Primera Sala y de la Segunda Sala"),
            ["pleno", "plenos_regionales", "plenos_de_circuito", "tribunales_colegiados"]
        );
        assert_eq!(courts("despido de la Primera Sala, excepto de la Segunda Sala"), ["primera_sala"]);
        check("criterios clasificados en materia penal", Filters { materias: penal(), ..none() }, "criterios");
        check("tesis publicadas en 2024", Filters { years: Some((2024, 2024)), ..none() }, "tesis");
        check("y en materia penal?", Filters { materias: vec!["penal".to_owned()], ..none() }, "y");
        let others = Filters { epocas: vec![5, 6, 7, 8, 9, 11, 12], ..none() };
        check("Excluye los de la Décima", others, "Excluye");
        let colegiados = |materia: &str| Filters {
            instancias: vec!["tribunales_colegiados".to_owned()],
            materias: vec![materia.to_owned()],
            ..none()
        };
        check("Criterios de Tribunales Colegiados de Circuito en materia laboral", colegiados("laboral"), "Criterios");
        check("¿y colegiados en mercantil?", colegiados("mercantil"), "¿y");
        let pleno = Filters { instancias: vec!["pleno".to_owned()], ..none() };
        check("hay algo del Pleno de la Corte?", pleno, "hay algo");
        let first = Filters { instancias: vec!["primera_sala".to_owned()], ..none() };
        check("tesis de la Primera Sala sobre alimentos", first, "tesis sobre alimentos");
    }

    #[test]
    fn filters_are_described() {
        let filters = split("jurisprudencias de la Undécima Época de 2023 en adelante").filters;
        assert_eq!(filters.describe(), "Undécima Época, Jurisprudencia, desde 2023");
        assert_eq!(filters.to_query().len(), 3);
    }
}
