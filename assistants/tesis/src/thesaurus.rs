//! Words that indicate no topic, and groups of words that people use for the same legal concept.

pub(crate) mod everyday;
pub(crate) mod family;

use std::collections::{HashMap, HashSet};
use std::sync::LazyLock;

use threadkeep::core::text::content_terms;

use crate::intent::words::{is_ordinary, is_request};

/// Words used in requests and to talk about sources, folded.
const STOP_WORDS: &str = "
    busca buscar buscame busque busquen buscas encuentra encuentrame encontrar localiza localizame consulta investiga rastrea revisa
    dame deme dime digame muestra muestrame muestreme necesito necesitaria quiero quisiera requiero ponme cita citame tienes tendras
    hay existe existen existira conoces sabes puedes podrias podria puede favor porfavor porfa gracias hola
    explica explicame explicar explicas detalla detalles detalle amplia ampliame profundiza aclara aclarame resume resumen
    tesis jurisprudencia jurisprudencias jurisprudencial criterio criterios precedente precedentes registro registros rubro clave
    epoca epocas fuente fuentes resultado resultados articulo articulos ley leyes
    mas otra otro otras otros distinta distinto distintas distintos diferente diferentes nueva nuevas nuevo nuevos reciente recientes
    ultima ultimas ultimo ultimos primera segunda tercera cuarta quinta
    hablame habla platicame informacion info algo alguna algun alguno algunas algunos acerca respecto relacionada relacionadas
    relacionado relacionados tema temas figura caso casos asunto asuntos pregunta preguntas misma mismo ahora tambien ademas
    dice dicen dijo establece establecen senala senalan significa significan entiende quiere decir refiere consiste
    instancia instancias sala salas ok okay oki vale orale sale general
    excluye excluyendo quita quitando descarta descartando elimina excepto salvo quitame quiteme quite excluya excluyeme descarte descartame elimine eliminame omite corte materia materias perdon quise decir refiero
    cambio cambiando cambiemos partir reves dejame dejeme pongas ponga incluyas incluya muestres traigas metas busques cites porfa
    cual cuales cuando como donde porque qué real mexico mexicano mexicana legal legales derecho";

/// Groups of words for the same concept; the words in a group are related to each other.
const GROUPS: &str = "
    despido despedir despidieron despidio despiden corrieron corrio correr rescision separacion cese
    patron patrones empleador empresa jefe
    trabajador trabajadora empleado empleada obrero
    salario sueldo paga remuneracion percepciones salarios
    aguinaldo gratificacion
    jornada horario horas extraordinarias
    vacaciones descanso
    finiquito liquidacion indemnizacion
    embarazo embarazada maternidad gravidez
    divorcio disolucion matrimonio conyuges esposos conyuge esposo esposa casados
    alimentos pension alimenticia manutencion alimentario acreedor
    menor menores hijo hijos hija hijas nino ninos nina ninas infancia infante adolescente nieto nietos nieta nietas bebe
    excepcion excepciones salvedad salvedades salvo
    custodia guarda convivencia visitas patria potestad
    herencia sucesion heredero herederos testamento legado intestado testador
    arrendamiento renta alquiler inquilino arrendatario arrendador casero rentar
    compraventa comprar vender comprador vendedor venta
    prestamo mutuo deudor acreedor deuda adeudo
    usucapion adquisitiva posesion poseedor
    prescripcion prescribe prescriben prescribir caducidad
    plazo termino dias tiempo cuanto
    dano danos perjuicio perjuicios responsabilidad reparacion
    banco institucion bancaria financiera credito cuenta cuentahabiente
    transferencia transferencias electronica electronicas vaciaron retiro cargo autorice autorizada
    probar prueba carga acreditar demostrar demuestra comprobar probatoria pruebas
    factura facturas comprobante comprobantes fiscal fiscales cfdi
    impuesto impuestos contribucion contribuciones tributo tributaria fisco
    multa sancion sanciones pena castigo penas
    carcel prision encarcelado preso detenido detencion privacion libertad reclusion
    policia arresto aprehension detener arrestar
    delito delitos crimen ilicito
    homicidio matar muerte privar vida
    robo hurto robar
    defensa legitima defenderse defenderme defendi defender agresion agredio agredir agresor agredieron ataque atacar ataco
    monto cantidad cuantia cuantificacion cuantificar importe
    suspension suspender suspendio suspenda suspendan
    omision omitir omitio omiten
    concesion conceder concedio concedida
    admision admitir admitio admiten
    extension extender
    exclusion excluir
    abogado defensor defensora licenciado asesoria
    juez jueza juzgador juzgadora juzgado tribunal jueces magistrado
    sentencia resolucion fallo laudo
    recurso impugnar impugnacion apelacion revision queja inconformarse apelar
    demanda demandar demandado demandante actor quejoso
    suspension suspender suspenda paralizar paraliza detenga detiene impide medida cautelar
    notificacion notificar emplazamiento notificaciones emplazar avisar
    municipio municipal ayuntamiento municipales
    huelga paro sindicato sindical coalicion
    expropiacion expropiar utilidad publica
    extranjero extranjeros extranjera inmigrante nacionalidad
    libertad expresion prensa manifestacion imprenta censura
    discriminacion igualdad genero discriminar discriminatorio
    salud medico medica hospital medicina
    educacion escuela ensenanza maestro alumno
    contrato contratos convenio pacto acuerdo clausula
    nulidad nulo nula invalidez anular
    presuncion presume presumen presumir presumirse presunto
    obligatorio obligatoria obligacion deber debe
    garantia fianza aval caucion hipoteca prenda
    propiedad dueno propietario inmueble casa terreno bienes
    dueno duena titular
    domicilio morada hogar vivienda
    cateo allanamiento registro intervencion comunicaciones
    edad anos mayoria mayor
    firma firmar rubrica
    electoral eleccion elecciones voto votar sufragio
    indigena indigenas pueblos comunidades
    agua ambiente ambiental contaminacion ecologico ecologista ecologistas ambientalista ambientalistas
    presidente ejecutivo mandatario
    diputado diputados senador senadores congreso legislador
    imss pensionado jubilacion jubilado jubilados pensionados
    accidente riesgo enfermedad incapacidad accidentes
    negar niega rechazar improcedencia desechar improcedente
    proceder procede procedencia procedente";

/// Further legal words, for correcting misspelt ones.
const LEGAL: &str = "
    amparo directo indirecto omision omisiones prescripcion suspension provisional definitiva usucapion jurisprudencia pagare mercantil
    notificacion competencia constitucional procedimiento resolucion ejecucion interes legitimo juridico garantia audiencia legalidad
    despido indemnizacion embargo desahucio sucesorio reivindicatoria nulidad caducidad contradiccion litigio quejoso tercero interesado
    autoridad responsable acto reclamado sobreseimiento improcedencia definitividad fundamentacion motivacion";

/// A word of a group, with its stems.
#[derive(Clone, Debug)]
struct Word {
    text: &'static str,
    stems: Vec<String>,
    spanish_stem: String,
}

impl Word {
    fn new(text: &'static str) -> Self {
        Self { text, stems: stems(text), spanish_stem: everyday::stems(text).concat() }
    }
}

/// The related words by stem.
static RELATED: LazyLock<HashMap<String, Vec<Word>>> = LazyLock::new(|| {
    let mut related: HashMap<String, Vec<Word>> = HashMap::new();
    for group in GROUPS.lines().map(str::trim).filter(|line| !line.is_empty()) {
        let words: Vec<Word> = group.split_whitespace().map(Word::new).collect();
        for word in &words {
            for term in &word.stems {
                let others = words.iter().filter(|other| other.text != word.text).cloned();
                related.entry(term.clone()).or_default().extend(others);
            }
        }
    }
    related
});

fn stems(word: &str) -> Vec<String> {
    content_terms(word).into_iter().flat_map(|(_, stems)| stems).collect()
}

/// Whether a folded word indicates no topic.
pub(crate) fn is_stop_word(word: &str) -> bool {
    static WORDS: LazyLock<HashSet<&str>> = LazyLock::new(|| STOP_WORDS.split_whitespace().collect());
    WORDS.contains(word) || is_ordinary(word) || is_request(word)
}

/// Returns words that are related to those of a query, without the words themselves.
pub(crate) fn related(query: &str) -> String {
    let own: Vec<(String, Vec<String>)> = content_terms(query);
    let own_stems: Vec<&String> = own.iter().flat_map(|(_, stems)| stems).collect();
    let mut found: Vec<&str> = Vec::new();
    for stem in &own_stems {
        for word in RELATED.get(*stem).into_iter().flatten() {
            let is_own = || word.stems.iter().any(|stem| own_stems.contains(&stem));
            if !found.contains(&word.text) && !is_own() {
                found.push(word.text);
            }
        }
    }
    found.truncate(12);
    found.join(" ")
}

/// Returns the words of the groups and the further legal words.
pub(crate) fn words() -> impl Iterator<Item = &'static str> {
    GROUPS.split_whitespace().chain(LEGAL.split_whitespace())
}

/// Whether a stem is that of a word of the groups.
pub(crate) fn has_stem(stem: &str) -> bool {
    RELATED.contains_key(stem)
}

/// Returns the stems of all words that are related to those of the text.
pub(crate) fn all_related(text: &str) -> HashSet<String> {
    let own: HashSet<String> = content_terms(text).into_iter().flat_map(|(_, stems)| stems).collect();
    own.iter().flat_map(|stem| related_stems(stem)).cloned().collect()
}

/// Returns the stems of the words that are related to a stem.
pub(crate) fn related_stems(stem: &str) -> impl Iterator<Item = &'static String> + use<> {
    RELATED.get(stem).into_iter().flatten().flat_map(|word| &word.stems)
}

/// Returns the Spanish stems of the words that are related to a Spanish stem.
pub(crate) fn related_spanish_stems(stem: &str) -> impl Iterator<Item = &'static String> + use<> {
    RELATED.get(stem).into_iter().flatten().map(|word| &word.spanish_stem)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_in_the_same_group_are_related() {
        let words = related("me corrieron del trabajo");
        assert!(words.contains("despido") && !words.contains("corrieron"), "{words}");
        assert_eq!(related("arraigo"), "");
    }
}
