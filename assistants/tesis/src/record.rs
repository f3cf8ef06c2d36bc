//! Reads records of tesis, in the formats of the court's services and of exported databases.

use serde::{Deserialize, Serialize};
use threadkeep::core::text::fold;
use threadkeep::{Map, Value};

use crate::clave::{ClaveKey, fold_text};
use crate::epoca;

/// A tesis. Only its number and its rubro are always known.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Tesis {
    /// The registro digital.
    pub id_tesis: i64,
    /// The title.
    pub rubro: String,
    /// The text.
    pub texto: String,
    /// The decisions that the tesis is taken from.
    pub precedentes: String,
    /// The época, from 1 to 12.
    pub epoca: Option<u8>,
    /// `Jurisprudencia` or `Aislada`.
    pub tipo: Option<Tipo>,
    /// The court, such as `Primera Sala`.
    pub instancia: Option<String>,
    /// The clave.
    pub clave: Option<String>,
    /// The year of publication.
    pub anio: Option<i64>,
    /// The subjects, such as `Civil`.
    pub materias: Vec<String>,
    /// Where the tesis was published.
    pub localizacion: Option<String>,
}

/// Whether a tesis is binding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Tipo {
    /// Binding.
    Jurisprudencia,
    /// Persuasive, not binding.
    Aislada,
}

impl Tipo {
    /// Returns the name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Jurisprudencia => "Jurisprudencia",
            Self::Aislada => "Aislada",
        }
    }
}

/// Why a record cannot be imported.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RecordError {
    /// It is not a JSON object.
    #[error("not an object")]
    NotAnObject,
    /// It has no registro digital.
    #[error("no registro digital (idTesis, id_tesis, registro_digital or ius with a positive number)")]
    NoNumber,
    /// It has no rubro.
    #[error("no rubro")]
    NoRubro,
}

const NUMBER: [&str; 7] = ["idTesis", "id_tesis", "registro_digital", "registroDigital", "registro", "ius", "id"];

impl Tesis {
    /// Reads a record. Fields that are missing, null or of another type are unknown; época, type and court are also read from
    /// `localizacion` and from the clave.
    ///
    /// # Errors
    /// The record is not an object, or has no number or no rubro.
    pub fn from_record(record: &Value) -> Result<Self, RecordError> {
        let record = record.as_object().ok_or(RecordError::NotAnObject)?;
        let number = NUMBER.iter().find_map(|name| integer(record.get(*name)));
        let id_tesis = number.filter(|number| (1..=999_999_999).contains(number)).ok_or(RecordError::NoNumber)?;
        let rubro = text(record, &["rubro"]).ok_or(RecordError::NoRubro)?;
        let clave = text(record, &["tesis", "clave"]);
        let localizacion = text(record, &["localizacion"]);
        let place = localizacion.clone().unwrap_or_default();
        let epoca_text = text(record, &["epoca", "epocaAbr"]);
        let epoca = epoca_text.as_deref().and_then(epoca::parse);
        let epoca =
            epoca.or_else(|| place.split(';').find(|part| fold_text(part).contains("epoca")).and_then(epoca::parse));
        let epoca = epoca.or_else(|| ClaveKey::of(clave.as_deref()?).epoca);
        let tipo = text(record, &["tipoTesis", "tipo_tesis", "tipo"]);
        let instancia = text(record, &["instancia", "instanciaAbr"]);
        Ok(Self {
            tipo: tipo
                .as_deref()
                .and_then(tipo_of)
                .or_else(|| tipo_of(&place))
                .or_else(|| tipo_of_clave(clave.as_deref()?)),
            instancia: instancia.or_else(|| court_of_clave(clave.as_deref()?)),
            anio: integer(record.get("anio")).or_else(|| integer(record.get("año"))).or_else(|| year_of(record)),
            texto: body(record.get("texto")).unwrap_or_default(),
            precedentes: text(record, &["precedentes"]).unwrap_or_default(),
            materias: materias(record),
            id_tesis,
            rubro,
            epoca,
            clave,
            localizacion,
        })
    }

    /// Whether a record of unknown kind is meant to be a tesis.
    #[must_use]
    pub(crate) fn is_tesis(record: &Map) -> bool {
        record.contains_key("rubro")
    }
}

fn integer(value: Option<&Value>) -> Option<i64> {
    match value? {
        Value::Number(number) => number.as_i64(),
        Value::String(text) => text.trim().parse().ok(),
        _ => None,
    }
}

fn text(record: &Map, names: &[&str]) -> Option<String> {
    let texts = names.iter().filter_map(|name| match record.get(*name)? {
        Value::String(text) => Some(text.trim().to_owned()),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    });
    texts.into_iter().find(|text| !text.is_empty()).map(|text| text.replace('\0', ""))
}

/// Reads text that is a string or an object with `contenido`.
fn body(value: Option<&Value>) -> Option<String> {
    match value? {
        Value::Object(object) => body(object.get("contenido")),
        Value::String(text) => Some(text.trim().replace('\0', "")),
        _ => None,
    }
}

fn tipo_of(text: &str) -> Option<Tipo> {
    let folded = fold_text(text);
    let first = folded.split_whitespace().next()?;
    match first {
        "j" => Some(Tipo::Jurisprudencia),
        "ta" | "a" => Some(Tipo::Aislada),
        _ if first.starts_with("jurisp") => Some(Tipo::Jurisprudencia),
        _ if folded.contains("aislada") => Some(Tipo::Aislada),
        _ => None,
    }
}

fn tipo_of_clave(clave: &str) -> Option<Tipo> {
    let mut words = clave.split(|c: char| !c.is_alphanumeric());
    Some(if words.any(|word| word == "J") { Tipo::Jurisprudencia } else { Tipo::Aislada })
}

fn court_of_clave(clave: &str) -> Option<String> {
    let court = match clave.split('.').next()?.trim() {
        "1a" => "Primera Sala",
        "2a" => "Segunda Sala",
        "P" => "Pleno",
        "PR" => "Plenos Regionales",
        "PC" => "Plenos de Circuito",
        roman if !roman.is_empty() && roman.chars().all(|c| "IVXL".contains(c)) => "Tribunales Colegiados de Circuito",
        _ => return None,
    };
    Some(court.to_owned())
}

/// Returns the year of a record's date: `2026-05-15` or `15/05/2026`.
fn year_of(record: &Map) -> Option<i64> {
    let date = text(record, &["fecha_publicacion", "fechaPublicacion", "fecha"])?;
    let year = date.split(['-', '/', ' ', 'T']).find(|part| part.len() == 4)?;
    year.parse().ok()
}

fn materias(record: &Map) -> Vec<String> {
    let found = match record.get("materias").or_else(|| record.get("materia")) {
        Some(Value::Array(all)) => all.iter().filter_map(Value::as_str).map(str::to_owned).collect(),
        Some(Value::String(text)) => text.split([',', ';', '|']).map(str::to_owned).collect(),
        _ => Vec::new(),
    };
    let trimmed =
        found.into_iter().map(|materia: String| materia.trim().trim_matches(['[', ']', '"', '\'']).to_owned());
    trimmed.filter(|materia| !materia.is_empty()).take(16).collect()
}

/// Returns the filter value of a court, which is the same for all its names and abbreviations.
pub(crate) fn court_slug(instancia: &str) -> String {
    let folded = fold_text(instancia);
    let has = |word: &str| folded.split_whitespace().any(|part| part == word);
    let slug = match () {
        () if has("regional") || has("regionales") => "plenos_regionales",
        () if folded.contains("plenos de circuito") || folded.contains("pleno de circuito") => "plenos_de_circuito",
        () if has("colegiado") || has("colegiados") || folded.split_whitespace().eq(["t", "c", "c"]) => {
            "tribunales_colegiados"
        }
        () if folded.contains("sala superior") => "sala_superior",
        () if has("primera") || has("1a") => "primera_sala",
        () if has("segunda") || has("2a") => "segunda_sala",
        () if has("pleno") => "pleno",
        () => return folded.split_whitespace().collect::<Vec<_>>().join("_").chars().take(60).collect(),
    };
    slug.to_owned()
}

/// Returns the filter value of a subject.
pub(crate) fn materia_slug(materia: &str) -> String {
    fold(materia.split_whitespace().next().unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn records_in_all_formats_are_read() {
        let full = Tesis::from_record(&json!({
            "idTesis": 2_031_567, "rubro": "AMPARO. X.", "texto": "Hechos: a.", "epoca": "Undécima Época", "instancia": "Primera Sala",
            "tesis": "1a./J. 104/2025 (11a.)", "tipoTesis": "Jurisprudencia", "anio": 2025, "materias": ["Civil", "Común"]
        }))
        .unwrap();
        assert_eq!((full.id_tesis, full.epoca, full.tipo), (2_031_567, Some(11), Some(Tipo::Jurisprudencia)));
        assert_eq!(full.materias, ["Civil", "Común"]);
        let nulls = json!({"registro_digital": "180345", "rubro": "IGUALDAD.", "texto": {"contenido": "T"}, "tesis": null, "materias": null});
        let sparse = Tesis::from_record(&nulls).unwrap();
        assert_eq!((sparse.id_tesis, sparse.texto.as_str(), sparse.tipo, sparse.epoca), (180_345, "T", None, None));
        let derived = Tesis::from_record(&json!({
            "ius": 1, "rubro": "R", "clave": "VII.1o.C.6 C (12a.)", "localizacion": "[TA]; 12a. Época; T.C.C.; Gaceta S.J.F.",
            "fecha_publicacion": "2026-05-15"
        }))
        .unwrap();
        assert_eq!((derived.epoca, derived.tipo, derived.anio), (Some(12), Some(Tipo::Aislada), Some(2026)));
        assert_eq!(derived.instancia.as_deref(), Some("Tribunales Colegiados de Circuito"));
    }

    #[test]
    fn records_without_number_or_rubro_are_errors() {
        for (record, expected) in [
            (json!(7), RecordError::NotAnObject),
            (json!({"rubro": "R"}), RecordError::NoNumber),
            (json!({"rubro": "R", "ius": -1}), RecordError::NoNumber),
            (json!({"ius": 1, "rubro": null}), RecordError::NoRubro),
        ] {
            assert_eq!(Tesis::from_record(&record), Err(expected));
        }
    }

    #[test]
    fn courts_have_one_value_for_all_names() {
        for (name, slug) in [
            ("Primera Sala", "primera_sala"),
            ("1a. Sala", "primera_sala"),
            ("Tribunales Colegiados de Circuito", "tribunales_colegiados"),
            ("T.C.C.", "tribunales_colegiados"),
            ("Plenos Regionales", "plenos_regionales"),
            ("Pleno", "pleno"),
        ] {
            assert_eq!(court_slug(name), slug, "{name}");
        }
    }
}
