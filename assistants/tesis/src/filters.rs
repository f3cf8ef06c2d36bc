//! Filters that a question states in words: época, type, subject, court and years.

use serde::{Deserialize, Serialize};
use threadkeep::core::FieldFilter;

use crate::epoca;
use crate::record::{Tesis, court_slug, materia_slug};

mod reader;

pub(crate) use reader::split;

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
    /// What a tesis must not be.
    #[serde(skip_serializing_if = "Exclusions::is_empty")]
    pub without: Exclusions,
}

/// What a filter excludes. A tesis whose época, subject, court or year is unknown is not excluded.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Exclusions {
    /// Excluded épocas.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub epocas: Vec<u8>,
    /// Excluded subjects, folded.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub materias: Vec<String>,
    /// Excluded courts.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub instancias: Vec<String>,
    /// First and last excluded year.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub years: Option<(i64, i64)>,
}

impl Exclusions {
    /// Whether nothing is excluded.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Whether a tesis is excluded.
    #[must_use]
    pub fn matches(&self, tesis: &Tesis) -> bool {
        let court = tesis.instancia.as_deref().map(court_slug);
        tesis.epoca.is_some_and(|epoca| self.epocas.contains(&epoca))
            || tesis.materias.iter().any(|materia| self.materias.contains(&materia_slug(materia)))
            || court.is_some_and(|court| self.instancias.contains(&court))
            || self.years.is_some_and(|years| tesis.anio.is_some_and(|year| is_in(year, years)))
    }

    /// Names, in Spanish, what a tesis does not state although some of its values are excluded: `su materia`.
    pub(crate) fn unknown(&self, tesis: &Tesis) -> Vec<&'static str> {
        let facts = [
            (!self.epocas.is_empty() && tesis.epoca.is_none(), "su época"),
            (!self.materias.is_empty() && tesis.materias.is_empty(), "su materia"),
            (!self.instancias.is_empty() && tesis.instancia.is_none(), "su instancia"),
            (self.years.is_some() && tesis.anio.is_none(), "su año"),
        ];
        facts.into_iter().filter(|(is_unknown, _)| *is_unknown).map(|(_, name)| name).collect()
    }

    fn describe(&self) -> Vec<String> {
        let epocas = self.epocas.iter().map(|epoca| format!("sin la {}", epoca::name(*epoca)));
        let materias = self.materias.iter().map(|materia| format!("sin materia {materia}"));
        let courts = self.instancias.iter().map(|court| format!("sin {}", court.replace('_', " ")));
        let years = self.years.map(|years| match years {
            (first, last) if first == last => format!("sin el año {first}"),
            years => format!("excepto {}", describe_years(years)),
        });
        epocas.chain(materias).chain(courts).chain(years).collect()
    }
}

fn is_in(year: i64, (first, last): (i64, i64)) -> bool {
    (first..=last).contains(&year)
}

fn describe_years(years: (i64, i64)) -> String {
    match years {
        (first, LAST_YEAR) => format!("desde {first}"),
        (FIRST_YEAR, last) => format!("hasta {last}"),
        (first, last) if first == last => format!("año {first}"),
        (first, last) => format!("de {first} a {last}"),
    }
}

/// A question split into filters and other words.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct SplitQuestion {
    pub(crate) filters: Filters,
    /// The words of the question outside of filters, as typed.
    pub(crate) rest: String,
    /// Words of a branch of law that is only part of a subject: family law in `civil`.
    pub(crate) branch: Option<&'static str>,
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
            && self.years.is_none_or(|years| tesis.anio.is_some_and(|year| is_in(year, years)))
            && !self.without.matches(tesis)
    }

    /// Returns the conditions for the index. It cannot exclude values, so what it finds must be checked with `without`.
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
        let has_epocas = !later.epocas.is_empty() || !later.without.epocas.is_empty();
        let has_materias = !later.materias.is_empty() || !later.without.materias.is_empty();
        let has_courts = !later.instancias.is_empty() || !later.without.instancias.is_empty();
        let has_years = later.years.is_some() || later.without.years.is_some();
        let epocas = if has_epocas { later } else { self };
        let materias = if has_materias { later } else { self };
        let courts = if has_courts { later } else { self };
        let years = if has_years { later } else { self };
        Self {
            epocas: epocas.epocas.clone(),
            tipo: later.tipo.clone().or_else(|| self.tipo.clone()),
            materias: materias.materias.clone(),
            instancias: courts.instancias.clone(),
            years: years.years,
            without: Exclusions {
                epocas: epocas.without.epocas.clone(),
                materias: materias.without.materias.clone(),
                instancias: courts.without.instancias.clone(),
                years: years.without.years,
            },
        }
    }

    /// Describes the filters: `Undécima Época, Jurisprudencia`.
    #[must_use]
    pub fn describe(&self) -> String {
        let mut parts: Vec<String> = self.epocas.iter().map(|epoca| epoca::name(*epoca)).collect();
        parts.extend(self.tipo.clone());
        parts.extend(self.materias.iter().map(|materia| format!("materia {materia}")));
        parts.extend(self.instancias.iter().map(|court| court.replace('_', " ")));
        parts.extend(self.years.map(describe_years));
        parts.extend(self.without.describe());
        parts.join(", ")
    }
}

#[cfg(test)]
mod tests;
