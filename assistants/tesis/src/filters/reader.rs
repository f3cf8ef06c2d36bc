//! Reads the filters from the words of a question.

use super::{FIRST_YEAR, Filters, LAST_YEAR, SplitQuestion};
use crate::clave::fold_text;
use crate::epoca;

/// Words that exclude what follows.
const EXCLUSIONS: [&str; 22] = [
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
    "omitiendo",
    "quitar",
    "descartar",
    "excluir",
    "sin",
    "ni",
    "tampoco",
];

/// Words that can stand between a word that excludes and what it excludes: `quítame por favor las de la Décima`.
const LINKS: [&str; 25] = [
    "de",
    "del",
    "la",
    "las",
    "el",
    "los",
    "lo",
    "en",
    "materia",
    "materias",
    "tesis",
    "criterios",
    "que",
    "sea",
    "sean",
    "ano",
    "anos",
    "todo",
    "toda",
    "todas",
    "todos",
    "por",
    "favor",
    "tema",
    "emitidas",
];

/// Requests that exclude what follows after `no`: `no me pongas penales`.
const NOT_WANTED: [&str; 14] = [
    "quiero", "quisiera", "des", "pongas", "ponga", "incluyas", "incluya", "cites", "muestres", "traigas", "metas",
    "busques", "necesito", "ocupo",
];

/// The kinds of filters that can be excluded together: `menos penal y laboral`.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Epoca,
    Materia,
    Court,
}

/// Branches of law that are only part of a subject, with the words of their topics.
const BRANCHES: [(&[&str], &str); 2] = [
    (
        &["familia", "familiar", "familiares"],
        "familia alimentos menores custodia divorcio matrimonio paternidad adopción",
    ),
    (
        &["fiscal", "fiscales", "tributaria", "tributarias"],
        "fiscal impuestos contribuciones comprobantes facultades comprobación",
    ),
];

const MATERIAS: [(&str, &str); 22] = [
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
    ("fiscales", "administrativa"),
    ("tributarias", "administrativa"),
    ("familiares", "civil"),
    ("constitucionales", "constitucional"),
];

/// Splits a question into filters and other words.
pub(crate) fn split(question: &str) -> SplitQuestion {
    let typed: Vec<&str> = question.split_whitespace().collect();
    let fold = |word: &&str| fold_text(word).trim_matches([' ', '/']).to_owned();
    let folded: Vec<String> = typed.iter().map(fold).collect();
    let mut reader = Reader {
        words: folded.iter().map(String::as_str).collect(),
        ends_part: typed.iter().map(|word| word.ends_with([',', ';', ':', '.', '?', '!'])).collect(),
        used: vec![false; typed.len()],
        filters: Filters::default(),
        excluded: None,
        branch: None,
    };
    for at in 0..typed.len() {
        reader.epoca(at);
        reader.tipo(at);
        reader.materia(at);
        reader.court(at);
        reader.years(at);
    }
    let rest: Vec<&str> = typed.iter().zip(&reader.used).filter(|(_, used)| !**used).map(|(word, _)| *word).collect();
    SplitQuestion { branch: reader.branch, filters: reader.filters, rest: rest.join(" ") }
}

struct Reader<'a> {
    words: Vec<&'a str>,
    /// Whether a comma or another mark ends the part of the message at each word.
    ends_part: Vec<bool>,
    used: Vec<bool>,
    filters: Filters,
    /// The kind of the last excluded filter, and where its words end.
    excluded: Option<(Kind, usize)>,
    branch: Option<&'static str>,
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
                "lo",
                "derecho",
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
        if let Some(epoca) = epoca::parse(self.word(at)).filter(|_| is_epoca || is_name || self.is_old_epoca(at)) {
            if self.is_excluded(Kind::Epoca, at) {
                self.exclude(Kind::Epoca, if is_epoca { at + 2 } else { at + 1 });
                self.filters.without.epocas.push(epoca);
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
                let is_read = self.filters.epocas.contains(&other) || self.filters.without.epocas.contains(&other);
                if !is_read && self.is_excluded(Kind::Epoca, earlier) {
                    self.filters.without.epocas.push(other);
                } else if !is_read {
                    self.filters.epocas.push(other);
                }
                self.mark(earlier, at);
                self.mark_connectors(earlier);
            }
        }
    }

    /// Whether the name of an older época, which also is a position, stands for the época: `¿y de la Quinta?`, but not `la clave de la quinta`.
    fn is_old_epoca(&self, at: usize) -> bool {
        const ASKS: [&str; 17] = [
            "",
            "y",
            "e",
            "o",
            "hay",
            "algo",
            "alguna",
            "algunas",
            "tesis",
            "las",
            "de",
            "entonces",
            "ahora",
            "pero",
            "tienes",
            "criterios",
            "solo",
        ];
        ["quinta", "sexta", "septima", "octava"].contains(&self.word(at))
            && self.before(at, 1) == "la"
            && self.before(at, 2) == "de"
            && self.words[..at - 2].iter().all(|word| ASKS.contains(word))
            && self.words[at + 1..].iter().all(|word| ["", "no", "hay", "si", "tampoco", "nada"].contains(word))
    }

    fn tipo(&mut self, at: usize) {
        // `aisladas no`
        let is_negated_after = self.word(at + 1) == "no" && ["", "y", "por", "porfa"].contains(&self.word(at + 2));
        let is_negated = ["no", "sin", "excepto"].contains(&self.before(at, 1))
            || self.rules_out(at)
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
        // `Déjame puras obligatorias`, but not `¿son obligatorias?`
        // `¿Esa es obligatoria o nomás orientadora?` asks for the kind.
        let asks_force = ["es", "son", "o"].iter().any(|word| self.words.contains(word));
        let names_force = !asks_force
            && (1..=2).any(|back| {
                ["solo", "solamente", "unicamente", "puras", "pura", "nomas", "sea", "sean", "las"]
                    .contains(&self.before(at, back))
            })
            && !["que", "cual", "por", "para"].contains(&self.before(at, 3));
        let tipo = match self.word(at) {
            "obligatoria" | "obligatorias" | "vinculantes" if names_force && is_negated => "Aislada",
            "obligatoria" | "obligatorias" | "vinculantes" if names_force => "Jurisprudencia",
            "orientadora" | "orientadoras" if names_force && !is_negated => "Aislada",
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
            word => (find(word).filter(|_| self.stands_alone(at) || self.is_not_wanted(at)), 1),
        };
        let Some(materia) = materia else { return };
        self.branch = BRANCHES
            .iter()
            .find(|(names, _)| names.contains(&self.word(at + length - 1)))
            .map(|(_, words)| *words)
            .or(self.branch);
        let is_denied = ["es", "son"].iter().any(|verb| {
            (1..=2).any(|back| self.before(at, back) == *verb && self.before(at, back + 1) == "no")
                && !self.words.contains(&"cual")
        });
        if self.is_excluded(Kind::Materia, at) || is_denied {
            self.exclude(Kind::Materia, at + length);
            self.filters.without.materias.push(materia.to_owned());
        } else if !self.filters.materias.iter().any(|own| own == materia) {
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

    /// Whether a filter is excluded: `excluye los de la Décima`, `menos penal y laboral`.
    fn is_excluded(&self, kind: Kind, at: usize) -> bool {
        self.rules_out(at) || self.continues_exclusion(kind, at)
    }

    fn exclude(&mut self, kind: Kind, end: usize) {
        self.excluded = Some((kind, end));
    }

    /// Whether the words before a position rule out what follows: `que no sea de la Segunda Sala`, `quítame las`, `no me pongas`.
    fn rules_out(&self, at: usize) -> bool {
        let Some(last) = (0..at).rev().take(7).find(|at| !LINKS.contains(&self.words[*at])) else { return false };
        let (word, before) = (self.word(last), self.before(last, 1));
        if self.ends_part[last] {
            return false;
        }
        let excludes =
            EXCLUSIONS.contains(&word) || word.strip_suffix("me").is_some_and(|verb| EXCLUSIONS.contains(&verb));
        // `Al menos dime …` excludes nothing.
        let is_least = word == "menos" && ["al", "lo", "por"].contains(&before);
        // `¿No hay nada de la Décima?`
        let asks = ["no", "hay", "tienes", "tiene", "encontraste", "encontro"].contains(&before);
        let is_not_wanted =
            NOT_WANTED.contains(&word) && (before == "no" || before == "me" && self.before(last, 2) == "no");
        // `No, la de la Segunda Sala` corrects what was understood.
        let is_denied = word == "no" && last > 0;
        excludes && !is_least || word == "nada" && !asks || is_not_wanted || is_denied
    }

    /// Whether a request not to show something precedes a position: `no me pongas penales`.
    fn is_not_wanted(&self, at: usize) -> bool {
        NOT_WANTED.contains(&self.before(at, 1)) && self.rules_out(at)
    }

    /// Whether only connectors separate a filter from an excluded one of its kind: `menos de la Primera Sala y de la Segunda`.
    fn continues_exclusion(&self, kind: Kind, at: usize) -> bool {
        let between = |(_, end): (Kind, usize)| self.words.get(end..at);
        let words = self.excluded.filter(|(own, _)| *own == kind).and_then(between).unwrap_or_default();
        words.iter().any(|word| ["y", "e", "o", "ni"].contains(word))
            && words.iter().all(|word| ["y", "e", "o", "ni", "de", "la", "del", "los", "en", "materia"].contains(word))
    }

    /// Whether an adjective modifies no noun of the topic: `¿y laborales?`, `las penales`, but not `acción penal`.
    fn stands_alone(&self, at: usize) -> bool {
        const AFTER: [&str; 20] = [
            "",
            "ni",
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
        const BEFORE: [&str; 29] = [
            "",
            "sin",
            "ni",
            "no",
            "menos",
            "excepto",
            "salvo",
            "tampoco",
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
                "nada",
                "menos",
                "excepto",
                "salvo",
                "sin",
            ]
            .contains(&self.before(at, 2))
            // `En lo familiar`, `de derecho penal`
            || ["lo", "derecho"].contains(&self.before(at, 1)) && ["en", "de"].contains(&self.before(at, 2));
        // `De tribunales colegiados, laboral`, `administrativa, igual novena`
        let follows_break = at == 0 || self.ends_part[at - 1];
        (BEFORE.contains(&self.before(at, 1)) || is_named || follows_break)
            && (AFTER.contains(&self.word(at + 1)) || self.ends_part[at])
    }

    fn court(&mut self, at: usize) {
        if self.used[at] {
            return;
        }
        let is_excluded = self.is_excluded(Kind::Court, at);
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
        let courts = court.iter().map(|court| (*court).to_owned());
        if is_excluded {
            self.filters.without.instancias.extend(courts);
            self.exclude(Kind::Court, at + length);
        } else {
            self.filters.instancias.extend(courts);
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
        if self.rules_out(from) {
            self.filters.without.years = Some(years);
        } else {
            self.filters.years = Some(years);
        }
        self.mark(from, to);
        self.mark_connectors(from);
    }
}
