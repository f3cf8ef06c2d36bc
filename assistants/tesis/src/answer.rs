//! Answers that quote the sources, in Spanish.

use crate::briefing::{Briefing, SourceLine};
use crate::clave::fold_text;
use crate::search::{content_words, matches};

/// The answer if there are no sources.
pub(crate) const NO_SOURCES: &str = "No tengo fuentes para responder, así que no cito nada.";
/// The answer to thanks.
const THANKS: &str = "Con gusto. Si necesitas otra tesis o más detalles, dímelo.";
/// The answer to a greeting.
const GREETING: &str = "Hola. Dime qué tema jurídico quieres investigar y busco las tesis aplicables.";
/// The answer to questions about the assistant.
const ABOUT: &str = "Busco tesis, artículos y sentencias en el corpus y cito solo lo que contiene. Pregunta por un tema jurídico, por un \
                     registro digital o por una clave; después puedes pedir más detalles, otras tesis, o filtrar por época, tipo, \
                     materia, instancia o año.";
/// The answer to a message that contains no word of the corpus.
pub(crate) const OFF_TOPIC: &str = "Ninguna palabra de tu mensaje aparece en el corpus, así que no cito nada. Busco tesis, artículos y \
                                    sentencias: dime un tema jurídico.";
/// The answer to a message that is not about law.
pub(crate) const OTHER_MATTER: &str = "No reconozco en tu mensaje un tema jurídico, así que no busqué ni cito nada. Busco tesis, artículos y \
                                       sentencias: dime un tema jurídico.";
/// The maximum number of sources that an answer quotes.
const MAX_QUOTED: usize = 5;
/// The length of a quotation, in characters, beyond which no sentence is added. A single sentence may be twice as long.
const QUOTE_CHARACTERS: usize = 420;
/// The maximum length of a full text, in characters.
const FULL_CHARACTERS: usize = 3_500;

/// The answer to a request for an invented source.
const NO_INVENTION: &str =
    "No invento tesis, registros ni claves: cito solo lo que contiene el corpus. Dime un tema jurídico y lo busco.";

/// Answers a courtesy or a question about the assistant.
pub(crate) fn courtesy(message: &str) -> String {
    if crate::intent::asks_about_assistant(message) {
        return ABOUT.to_owned();
    }
    if crate::intent::asks_to_invent(message) {
        return NO_INVENTION.to_owned();
    }
    let folded = fold_text(message);
    let is_greeting =
        folded.split_whitespace().next().is_some_and(|word| ["hola", "buenos", "buenas", "buen"].contains(&word));
    if is_greeting && !folded.contains("gracias") { GREETING.to_owned() } else { THANKS.to_owned() }
}

/// Answers a search that found nothing.
pub(crate) fn nothing_found(briefing: &Briefing) -> String {
    let mut lines = briefing.avisos.clone();
    if lines.is_empty() {
        let query = if briefing.consulta.is_empty() { &briefing.pregunta } else { &briefing.consulta };
        lines.push(format!("No encontré en el corpus fuentes sobre «{}», así que no cito ninguna.", query.trim()));
    }
    lines.push(match briefing.corpus_al.as_str() {
        "" => "El corpus está vacío: importa tesis con `threadkeep tesis import`.".to_owned(),
        day => format!("El corpus está actualizado al {day}; puede haber tesis que no incluye."),
    });
    lines.join("\n")
}

/// Answers with quotations from the sources.
pub(crate) fn quote(briefing: &Briefing, sources: &[SourceLine]) -> String {
    let mut lines = briefing.avisos.clone();
    if sources.is_empty() {
        return if lines.is_empty() { NO_SOURCES.to_owned() } else { lines.join("\n") };
    }
    let focused: Vec<&SourceLine> = sources.iter().filter(|source| briefing.foco.contains(&source.n)).collect();
    let mut attributes = match briefing.reutiliza || briefing.exacta || briefing.pide_datos {
        true => Attribute::all_of(&briefing.pregunta),
        false => Vec::new(),
    };
    if briefing.exacta {
        // The question names the registro or clave only to say which source it means.
        attributes.retain(|attribute| !matches!(attribute, Attribute::Registro | Attribute::Clave | Attribute::Title));
    }
    let first = attributes.first().copied();
    let pool = || if focused.is_empty() { sources.iter().collect() } else { focused.clone() };
    let chosen = match first {
        Some(Attribute::Newest | Attribute::Oldest) => by_year(pool(), first == Some(Attribute::Newest)),
        _ if !focused.is_empty() => focused,
        Some(Attribute::MostImportant) => sources.iter().take(1).collect(),
        Some(Attribute::Difference) => sources.iter().take(2).collect(),
        Some(_) if asks_about_all(&briefing.pregunta) => sources.iter().take(MAX_QUOTED).collect(),
        _ => by_relevance(briefing, sources),
    };
    match first {
        Some(attribute @ (Attribute::Newest | Attribute::Oldest)) => {
            let which = if attribute == Attribute::Newest { "reciente" } else { "antigua" };
            lines.push(format!("De las fuentes citadas, la más {which}:"));
            lines.extend(chosen.iter().take(1).map(|source| describe(&[Attribute::Year], briefing, source)));
        }
        Some(Attribute::MostImportant) => {
            lines.push(
                "De las fuentes citadas, esta es la de mayor jerarquía por época, tipo, instancia y año:".to_owned(),
            );
            lines.extend(chosen.iter().map(|source| quotation(briefing, source)));
        }
        Some(Attribute::Difference) => lines.extend(chosen.iter().map(|source| quotation(briefing, source))),
        Some(_) => lines.extend(chosen.iter().map(|source| describe(&attributes, briefing, source))),
        None => {
            lines.push(introduction(briefing, chosen.len()));
            lines.extend(chosen.iter().map(|source| quotation(briefing, source)));
        }
    }
    if !briefing.corpus_al.is_empty() && !briefing.reutiliza {
        lines.push(format!("Corpus actualizado al {}; puede haber tesis que no incluye.", briefing.corpus_al));
    }
    lines.join("\n\n")
}

/// Whether a follow-up asks about every source: `¿de qué años son?`, `la época de cada una`.
fn asks_about_all(question: &str) -> bool {
    let folded = fold_text(question);
    folded.split_whitespace().any(|word| ["son", "cada", "todas", "todos", "ellas", "ellos", "sus"].contains(&word))
}

/// Returns sources by year, the newest or the oldest first. Sources without a year come last.
fn by_year(mut sources: Vec<&SourceLine>, newest_first: bool) -> Vec<&SourceLine> {
    sources.sort_by_key(|source| match newest_first {
        true => source.anio.map_or(i64::MAX, |year| -year),
        false => source.anio.unwrap_or(i64::MAX),
    });
    sources
}

/// Returns the facts about a source that a follow-up asks for.
fn describe(attributes: &[Attribute], briefing: &Briefing, source: &SourceLine) -> String {
    let facts = attributes.iter().filter_map(|attribute| attribute.fact(source));
    let facts: String = facts.map(|fact| format!("\n   {fact}")).collect();
    let mark = if source.ya_citada && !briefing.reutiliza { " (ya citada)" } else { "" };
    format!("{}. {}{mark}{facts}\n   Cita: {}.", source.n, source.titulo, source.cita)
}

/// Whether a message asks for a fact about a source: its court, its year, its clave.
pub(crate) fn asks_attribute(message: &str) -> bool {
    !Attribute::all_of(message).is_empty()
}

/// Whether a message compares sources, also by their content.
pub(crate) fn compares(message: &str) -> bool {
    compares_sources(message) || Attribute::all_of(message).contains(&Attribute::Difference)
}

/// Whether a message only asks whether a source is binding.
pub(crate) fn asks_force(message: &str) -> bool {
    Attribute::all_of(message) == [Attribute::Force]
}

/// Whether a message compares the sources at hand: `¿y la más reciente?`
pub(crate) fn compares_sources(message: &str) -> bool {
    let is_comparison =
        |attribute: &Attribute| matches!(attribute, Attribute::Newest | Attribute::Oldest | Attribute::MostImportant);
    Attribute::all_of(message).first().is_some_and(is_comparison)
}

fn introduction(briefing: &Briefing, count: usize) -> String {
    match (briefing.reutiliza, count) {
        (true, 1) => "Esto agrega la fuente citada:".to_owned(),
        (true, _) => "Esto agregan las fuentes citadas:".to_owned(),
        (false, 1) => "Encontré esta fuente:".to_owned(),
        (false, count) => format!("Encontré estas {count} fuentes:"),
    }
}

/// Returns the sources to quote, in their order. For a follow-up, these are the ones that contain most of its words, or all sources if
/// none contains any.
fn by_relevance<'a>(briefing: &Briefing, sources: &'a [SourceLine]) -> Vec<&'a SourceLine> {
    let texts: Vec<String> = sources.iter().map(|source| format!("{}\n{}", source.titulo, source.texto)).collect();
    let counts = matches(&briefing.pregunta, &texts);
    let best = counts.iter().copied().max().unwrap_or(0);
    let is_chosen = |count: usize| !briefing.reutiliza || best == 0 || count == best;
    sources
        .iter()
        .zip(counts)
        .filter(|(_, count)| is_chosen(*count))
        .map(|(source, _)| source)
        .take(MAX_QUOTED)
        .collect()
}

fn quotation(briefing: &Briefing, source: &SourceLine) -> String {
    let mark = if source.ya_citada { " (ya citada)" } else { "" };
    let quoted = passage(briefing, source);
    let quoted = if quoted.is_empty() {
        "El corpus solo contiene el rubro de esta tesis.".to_owned()
    } else {
        format!("«{quoted}»")
    };
    format!("{}. {}{mark}\n   {quoted}\n   Cita: {}.", source.n, source.titulo, source.cita)
}

/// Returns the sentences of a source that best match the question. For a follow-up, sentences that the previous answer
/// quoted are skipped if others remain.
fn passage(briefing: &Briefing, source: &SourceLine) -> String {
    let sentences = sentences(&source.texto);
    let question = if content_words(&briefing.pregunta).is_empty() { &briefing.consulta } else { &briefing.pregunta };
    let counts = matches(question, &sentences);
    let is_new = |sentence: &String| !briefing.reutiliza || !briefing.anterior.contains(sentence.as_str());
    let candidates: Vec<usize> = (0..sentences.len()).filter(|index| is_new(&sentences[*index])).collect();
    let pool: Vec<usize> = if candidates.is_empty() { (0..sentences.len()).collect() } else { candidates };
    let Some(best) = pool.iter().copied().max_by_key(|index| (counts[*index], std::cmp::Reverse(*index))) else {
        return String::new();
    };
    let mut quoted = String::new();
    for (index, sentence) in sentences.iter().enumerate().skip(best) {
        let length = quoted.chars().count() + sentence.chars().count();
        if !quoted.is_empty() && (length > QUOTE_CHARACTERS || !pool.contains(&index)) {
            break;
        }
        if !quoted.is_empty() {
            quoted.push(' ');
        }
        quoted.push_str(sentence);
    }
    cut(&quoted, 2 * QUOTE_CHARACTERS)
}

fn cut(text: &str, characters: usize) -> String {
    match text.char_indices().nth(characters) {
        Some((at, _)) => format!("{}…", text[..at].trim_end()),
        None => text.to_owned(),
    }
}

/// Splits text into sentences, which end at a period or semicolon before a capital letter, or at the end of a line.
fn sentences(text: &str) -> Vec<String> {
    let mut sentences = Vec::new();
    for line in text.lines().map(str::trim).filter(|line| !line.is_empty()) {
        let mut start = 0;
        let chars: Vec<(usize, char)> = line.char_indices().collect();
        for (index, (at, c)) in chars.iter().enumerate() {
            if *at < start {
                continue;
            }
            let after = chars.get(index + 2).map(|(_, c)| *c);
            let is_space = chars.get(index + 1).is_some_and(|(_, c)| *c == ' ');
            let word = line[start..*at].rsplit(' ').next().unwrap_or_default();
            if matches!(c, '.' | ';')
                && is_space
                && word.chars().count() > 2
                && after.is_some_and(|c| c.is_uppercase() || opens_sentence(c))
            {
                sentences.push(line[start..at + 1].trim().to_owned());
                start = at + 2;
            }
        }
        sentences.push(line[start..].trim().to_owned());
    }
    sentences.retain(|sentence| !sentence.is_empty());
    sentences
}

/// Whether a character that is not a letter can open a sentence.
fn opens_sentence(c: char) -> bool {
    matches!(c, '¿' | '¡' | '«' | '"')
}

/// What a follow-up asks about a source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Attribute {
    Court,
    Year,
    Registro,
    Clave,
    Epoca,
    Materia,
    Kind,
    Force,
    Precedents,
    FullText,
    Title,
    Citation,
    Difference,
    MostImportant,
    Newest,
    Oldest,
    /// Names and numbers that the corpus does not contain.
    Unknown,
}

impl Attribute {
    /// Returns what a question asks for, without repetition.
    fn all_of(question: &str) -> Vec<Self> {
        let folded = format!(" {} ", fold_text(question).split_whitespace().collect::<Vec<_>>().join(" "));
        let has = |words: &[&str]| words.iter().any(|word| folded.contains(&format!(" {word}")));
        let rules: [(Self, &[&str]); 17] = [
            (Self::Newest, &["mas reciente", "mas nueva", "mas actual", "mas moderna"]),
            (Self::Oldest, &["mas antigua", "mas vieja", "publico primero", "emitio primero", "salio primero"]),
            (
                Self::Unknown,
                &[
                    "ponente",
                    "como se llamaba el",
                    "como se llamaba la",
                    "nombre del",
                    "nombre de la parte",
                    "numero de expediente",
                    "que expediente",
                    "quien voto",
                    "quienes votaron",
                    "como votaron",
                    "votacion",
                    "cuantos votos",
                    "que votos",
                    "voto particular",
                    "voto en contra",
                    "votos en contra",
                    "voto disidente",
                    "por unanimidad",
                    "por mayoria de",
                    "disintio",
                    "disintieron",
                    "disidente",
                    "secretario de estudio",
                    "secretaria de estudio",
                    "quien fue el ministro",
                    "quien fue la ministra",
                    "que ministro",
                    "que ministra",
                    "que magistrado",
                    "que magistrada",
                ],
            ),
            (
                Self::FullText,
                &[
                    "texto completo",
                    "texto integro",
                    "completa la tesis",
                    "transcrib",
                    "tesis completa",
                    "texto de la",
                    "texto ",
                    "parte conducente",
                ],
            ),
            (Self::Difference, &["diferenci", "distingue", "compara", "contrasta"]),
            (
                Self::MostImportant,
                &[
                    "mas importante",
                    "mas relevante",
                    "mas util",
                    "la mejor ",
                    "cual es mejor",
                    "cual conviene",
                    "cual me conviene",
                    "mas fuerte",
                    "pesa mas",
                ],
            ),
            (Self::Precedents, &["precedente", "de que asunto", "que asunto"]),
            (
                Self::Force,
                &["obligatori", "vinculan", "obliga ", "obligan ", "vincula ", "que fuerza", "apartarse", "binding"],
            ),
            (
                Self::Kind,
                &[
                    "es jurisprudencia",
                    "son jurisprudencia",
                    "tipo y ",
                    "y tipo ",
                    "tipo epoca",
                    "tipo clave",
                    "tipo registro",
                    "constituye jurisprudencia",
                    "es aislada",
                    "o aislada",
                    "o jurisprudencia",
                    "que tipo ",
                ],
            ),
            (Self::Registro, &["registro", "que numero", "cual es su numero", "dame el numero", "el numero para"]),
            (Self::Clave, &["clave", "numero de tesis"]),
            (Self::Epoca, &["epoca"]),
            (
                Self::Materia,
                &[
                    "materia ",
                    "materias ",
                    "es penal",
                    "es civil",
                    "es laboral",
                    "es mercantil",
                    "es administrativa",
                    "o penal ",
                    "o civil ",
                    "o laboral ",
                ],
            ),
            (
                Self::Year,
                &[
                    "de que ano",
                    "que ano",
                    "que fecha",
                    "cuando se emitio",
                    "cuando se publico",
                    "cuando fue",
                    "cuando salio",
                    "de cuando",
                    "que anos",
                ],
            ),
            (
                Self::Court,
                &[
                    "sala ",
                    "salas ",
                    "que organo",
                    "que tribunal",
                    "que instancia",
                    "la instancia ",
                    "el organo ",
                    "quien la emitio",
                    "quien emitio",
                    "quien la dicto",
                    "quien la saco",
                    "quien lo dicto",
                    "quien lo emitio",
                    "que corte",
                    "que circuito",
                ],
            ),
            (
                Self::Citation,
                &[
                    "como la cito",
                    "como cito",
                    "como se cita",
                    "como citar",
                    "la cita ",
                    "para citar",
                    "formato de cita",
                    "cita completa",
                    "datos de localizacion",
                    "datos de identificacion",
                    "datos de publicacion",
                    "datos de la tesis",
                ],
            ),
            (Self::Title, &["rubro", "como se llama", "titulo"]),
        ];
        // `¿Qué tipo de estudio hace?` asks for no type of the tesis.
        let other_type = folded.split_once(" que tipo de ").is_some_and(|(_, rest)| {
            !["tesis", "criterio", "fuente", "precedente"].iter().any(|noun| rest.starts_with(noun))
        });
        // `A partir de cuándo corre el plazo` asks for no date of the tesis.
        let asks_start = ["partir de cuando", "desde cuando"].iter().any(|phrase| folded.contains(phrase));
        let found: Vec<Self> = rules
            .into_iter()
            .filter(|(attribute, words)| {
                has(words)
                    && !(asks_start && *attribute == Self::Year)
                    && !(other_type && *attribute == Self::Kind && !folded.contains(" jurisprudencia "))
            })
            .map(|(attribute, _)| attribute)
            .collect();
        match found.first() {
            // Each of these covers the whole question.
            Some(Self::FullText | Self::Difference | Self::MostImportant) => found[..1].to_vec(),
            _ => found,
        }
    }

    /// Returns this fact about a source; `None` if its citation is the answer.
    fn fact(self, source: &SourceLine) -> Option<String> {
        let unknown = || "dato no disponible en el corpus".to_owned();
        let value = |value: &Option<String>| value.clone().unwrap_or_else(unknown);
        Some(match self {
            Self::Court => format!("Instancia: {}", value(&source.instancia)),
            Self::Year => format!("Año: {}", value(&source.anio.map(|year| year.to_string()))),
            Self::Registro => format!("Registro digital: {}", value(&source.registro.map(|number| number.to_string()))),
            Self::Clave => format!("Clave: {}", value(&source.clave)),
            Self::Epoca => format!("Época: {}", value(&source.epoca)),
            Self::Materia if source.materias.is_empty() => format!("Materia: {}", unknown()),
            Self::Materia => format!("Materia: {}", source.materias.join(", ")),
            Self::Kind => {
                format!("Tipo: {}", value(&source.tipo.clone().map(|tipo| format!("{tipo} ({})", source.fuerza))))
            }
            Self::Force => {
                format!("Fuerza: {}", if source.fuerza.is_empty() { unknown() } else { source.fuerza.clone() })
            }
            Self::Precedents if source.precedentes.is_empty() => format!("Precedentes: {}", unknown()),
            Self::Precedents => format!("Precedentes: {}", source.precedentes),
            Self::FullText => cut(&source.texto, FULL_CHARACTERS),
            Self::Title => "El rubro es el que encabeza esta respuesta".to_owned(),
            // Precedents often name who voted and who drafted the decision.
            Self::Unknown if !source.precedentes.is_empty() => {
                format!("Precedentes: {}\n   El corpus no contiene otro dato sobre eso", source.precedentes)
            }
            Self::Unknown => "El corpus no contiene ese dato".to_owned(),
            Self::Citation | Self::Difference | Self::MostImportant | Self::Newest | Self::Oldest => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(n: usize, titulo: &str, texto: &str) -> SourceLine {
        SourceLine {
            n,
            titulo: titulo.to_owned(),
            texto: texto.to_owned(),
            registro: Some(2_000_000 + n as i64),
            instancia: Some("Primera Sala".to_owned()),
            cita: format!("registro digital {}", 2_000_000 + n),
            ..SourceLine::default()
        }
    }

    #[test]
    fn an_answer_quotes_the_sentence_that_bears_on_the_question() {
        let sources = [source(
            1,
            "VISITA DOMICILIARIA.",
            "La visita inicia con una orden. El plazo máximo es de doce meses. Después se notifica.",
        )];
        let briefing =
            Briefing { pregunta: "¿Cuál es el plazo máximo de la visita?".to_owned(), ..Briefing::default() };
        let answer = quote(&briefing, &sources);
        assert!(answer.contains("«El plazo máximo es de doce meses."), "{answer}");
        assert!(answer.contains("Cita: registro digital 2000001."), "{answer}");
    }

    // S3.51
    #[test]
    fn questions_about_a_source_are_answered_from_its_fields() {
        let sources = [source(1, "UNO.", "Texto uno."), source(2, "DOS.", "Texto dos.")];
        let ask = |pregunta: &str| {
            let briefing =
                Briefing { pregunta: pregunta.to_owned(), reutiliza: true, foco: vec![2], ..Briefing::default() };
            quote(&briefing, &sources)
        };
        for (question, expected) in [
            ("¿qué sala la emitió?", "Instancia: Primera Sala"),
            ("¿cuál es su registro?", "Registro digital: 2000002"),
            ("¿de qué año es?", "Año: dato no disponible en el corpus"),
            ("pásame el texto completo", "Texto dos."),
        ] {
            let answer = ask(question);
            assert!(
                answer.contains(expected) && answer.contains("DOS.") && !answer.contains("UNO."),
                "{question}: {answer}"
            );
        }
    }
}
