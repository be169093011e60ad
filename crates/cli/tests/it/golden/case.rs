//! One golden file, taken apart: requests with what belongs to them, and what must come back.

use std::fmt::Write as _;

use serde_json::Value;

use crate::harness::served::Answer;

/// A golden file.
#[derive(Debug)]
pub(crate) struct Case {
    pub(crate) store: String,
    pub(crate) args: Vec<String>,
    pub(crate) exchanges: Vec<Exchange>,
    /// What follows the last answer.
    pub(crate) end: String,
}

/// A request and what must come back.
#[derive(Clone, Debug, Default)]
pub(crate) struct Exchange {
    /// Where its request stands, from 1.
    pub(crate) line: usize,
    /// Everything up to the answer, as it stands.
    above: String,
    verb: Option<String>,
    headers: Vec<(String, String)>,
    is_chunked: bool,
    body: Vec<u8>,
    expected: Vec<Expected>,
}

/// One line about the answer.
#[derive(Clone, Debug, PartialEq)]
enum Expected {
    Status(u16),
    Header(String),
    NoHeader(String),
    Body(Vec<u8>),
    Begins(String),
    Ends(String),
    /// A body that is made, with the line that makes it.
    Made(Vec<u8>, String),
}

impl Case {
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let mut case = Self {
            store: "sample".to_owned(),
            args: Vec::new(),
            exchanges: Vec::new(),
            end: String::new(),
        };
        let mut exchange = Exchange::default();
        let mut has_request = false;
        for (line, number) in text.lines().zip(1..) {
            let fault = |reason: String| format!("line {number}: {reason}");
            let is_answer = line.starts_with("<<");
            if !is_answer && !exchange.expected.is_empty() {
                case.exchanges.push(std::mem::take(&mut exchange));
                has_request = false;
            }
            if is_answer {
                if !has_request {
                    return Err(fault("an answer without a request".to_owned()));
                }
                exchange.expected.push(Expected::parse(line).map_err(fault)?);
                continue;
            }
            exchange.above.push_str(line);
            exchange.above.push('\n');
            if let Some(rest) = line.strip_prefix(">>") {
                exchange.line = number;
                exchange.body = bytes(rest).map_err(fault)?;
                has_request = true;
            } else if let Some(word) = line.strip_prefix("# ") {
                let (name, value) = word.split_once(':').unwrap_or((word, ""));
                match name {
                    "store" => value.trim().clone_into(&mut case.store),
                    "args" => case.args = value.split_whitespace().map(str::to_owned).collect(),
                    "verb" => exchange.verb = Some(value.trim().to_owned()),
                    "chunked" => exchange.is_chunked = true,
                    "header" => {
                        let (name, value) =
                            value.split_once(':').ok_or_else(|| fault("name: value".to_owned()))?;
                        exchange.headers.push((name.trim().to_owned(), value.trim().to_owned()));
                    }
                    _ => return Err(fault(format!("{name} is not known"))),
                }
            } else if !line.is_empty() && !line.starts_with("//") {
                return Err(fault("neither comment, word, request nor answer".to_owned()));
            }
        }
        if exchange.expected.is_empty() {
            case.end = exchange.above;
        } else {
            case.exchanges.push(exchange);
        }
        if has_request && !case.end.is_empty() || case.exchanges.is_empty() {
            return Err("a request without an answer".to_owned());
        }
        Ok(case)
    }
}

impl Case {
    /// Requests and answers that are one JSON value each.
    pub(crate) fn pairs(&self) -> Vec<(Value, Value)> {
        let pair = |exchange: &Exchange| {
            let body = exchange.expected.iter().find_map(Expected::body)?;
            let request = serde_json::from_slice(&exchange.body).ok()?;
            Some((request, serde_json::from_slice(body).ok()?))
        };
        self.exchanges.iter().filter_map(pair).collect()
    }
}

impl Exchange {
    /// The request as it goes over the wire.
    pub(crate) fn request(&self) -> Vec<u8> {
        let verb = self.verb.as_deref().unwrap_or("POST /");
        let mut head = format!("{verb} HTTP/1.1\r\nconnection: close\r\n");
        let is_given = |name: &str| self.headers.iter().any(|(given, _)| given == name);
        if !is_given("host") {
            head.push_str("host: test\r\n");
        }
        if verb.starts_with("POST") && !is_given("content-type") {
            head.push_str("content-type: application/json\r\n");
        }
        for (name, value) in self.headers.iter().filter(|(_, value)| !value.is_empty()) {
            let _ = write!(head, "{name}: {value}\r\n");
        }
        if self.is_chunked {
            head.push_str("transfer-encoding: chunked\r\n\r\n");
            let mut request = head.into_bytes();
            for chunk in self.body.chunks(65_536) {
                request.extend_from_slice(format!("{:x}\r\n", chunk.len()).as_bytes());
                request.extend_from_slice(chunk);
                request.extend_from_slice(b"\r\n");
            }
            request.extend_from_slice(b"0\r\n\r\n");
            return request;
        }
        let is_bare = verb.starts_with("GET") && self.body.is_empty();
        if !is_bare {
            let _ = write!(head, "content-length: {}\r\n", self.body.len());
        }
        [head.as_bytes(), b"\r\n", &self.body].concat()
    }

    /// What is wrong with an answer.
    pub(crate) fn find_fault(&self, answer: &Answer) -> Option<String> {
        let status = self.expected.iter().find_map(Expected::status).unwrap_or(200);
        if answer.status != status {
            let body = String::from_utf8_lossy(&answer.body);
            return Some(format!("status {}, expected {status}: {body}", answer.status));
        }
        self.expected.iter().find_map(|expected| expected.find_fault(answer))
    }

    /// What is wrong with an answer by the lines that blessing leaves.
    pub(crate) fn find_fault_of_kept(&self, answer: &Answer) -> Option<String> {
        let mut kept = self.expected.iter().filter(|expected| expected.is_kept());
        kept.find_map(|expected| expected.find_fault(answer))
    }

    /// The exchange with this answer in the place of the one that was expected.
    pub(crate) fn blessed(&self, answer: &Answer) -> String {
        let mut text = self.above.clone();
        if answer.status != 200 {
            text.push_str(&Expected::Status(answer.status).line());
        }
        for kept in self.expected.iter().filter(|expected| expected.is_kept()) {
            text.push_str(&kept.line());
        }
        if !self.expected.iter().any(Expected::is_about_body) {
            text.push_str(&Expected::Body(answer.body.clone()).line());
        }
        text
    }
}

impl Expected {
    fn parse(line: &str) -> Result<Self, String> {
        let rest = &line[2..];
        let (word, value) = rest.split_once(' ').unwrap_or((rest, ""));
        Ok(match word {
            "status" => Self::Status(value.parse().map_err(|_| format!("{value}: a number"))?),
            "header" => Self::Header(value.to_ascii_lowercase()),
            "no-header" => Self::NoHeader(value.to_ascii_lowercase()),
            "any" => Self::Begins(String::new()),
            "begins" => Self::Begins(value.to_owned()),
            "ends" => Self::Ends(value.to_owned()),
            "repeat" => Self::Made(bytes(rest)?, line.to_owned()),
            _ => Self::Body(bytes(rest)?),
        })
    }

    fn body(&self) -> Option<&[u8]> {
        if let Self::Body(body) = self { Some(body) } else { None }
    }

    fn status(&self) -> Option<u16> {
        if let Self::Status(status) = self { Some(*status) } else { None }
    }

    /// Whether a person wrote it, and blessing leaves it.
    fn is_kept(&self) -> bool {
        !matches!(self, Self::Status(_) | Self::Body(_))
    }

    fn is_about_body(&self) -> bool {
        matches!(self, Self::Begins(_) | Self::Ends(_) | Self::Made(..))
    }

    fn line(&self) -> String {
        match self {
            Self::Status(status) => format!("<<status {status}\n"),
            Self::Header(header) => format!("<<header {header}\n"),
            Self::NoHeader(name) => format!("<<no-header {name}\n"),
            Self::Begins(text) if text.is_empty() => "<<any\n".to_owned(),
            Self::Begins(text) => format!("<<begins {text}\n"),
            Self::Ends(text) => format!("<<ends {text}\n"),
            Self::Made(_, line) => format!("{line}\n"),
            Self::Body(body) if body.is_empty() => "<<empty\n".to_owned(),
            Self::Body(body) => match std::str::from_utf8(body) {
                Ok(text) if text.contains(char::is_control) => {
                    format!("<<text {}\n", Value::from(text))
                }
                Ok(text) => format!("<< {text}\n"),
                Err(_) => format!("<<hex {}\n", alloy_primitives::hex::encode(body)),
            },
        }
    }

    fn find_fault(&self, answer: &Answer) -> Option<String> {
        match self {
            Self::Status(_) => None,
            Self::Header(header) => {
                let is_there = answer.head.lines().any(|line| line == header);
                (!is_there).then(|| format!("no header {header} in\n{}", answer.head))
            }
            Self::NoHeader(name) => {
                let begin = format!("{name}:");
                let is_there = answer.head.lines().any(|line| line.starts_with(&begin));
                is_there.then(|| format!("a header {name} in\n{}", answer.head))
            }
            Self::Begins(text) => {
                let end = answer.body.len().min(text.len());
                difference(text.as_bytes(), &answer.body[..end])
            }
            Self::Ends(text) => {
                let begin = answer.body.len().saturating_sub(text.len());
                difference(text.as_bytes(), &answer.body[begin..])
            }
            Self::Body(expected) | Self::Made(expected, _) => difference(expected, &answer.body),
        }
    }
}

/// Where two bodies part, with what surrounds the place.
fn difference(expected: &[u8], found: &[u8]) -> Option<String> {
    if expected == found {
        return None;
    }
    let same = expected.iter().zip(found).take_while(|(one, other)| one == other).count();
    let around = |bytes: &[u8]| {
        let (begin, end) = (same.saturating_sub(60).min(bytes.len()), bytes.len().min(same + 200));
        String::from_utf8_lossy(&bytes[begin..end]).into_owned()
    };
    Some(format!(
        "differs at byte {same}\n  expected {} bytes: ...{}\n  found    {} bytes: ...{}",
        expected.len(),
        around(expected),
        found.len(),
        around(found)
    ))
}

/// The bytes that a line stands for: ` text`, `text "json"`, `hex ..`, `empty`, `repeat {..}`.
fn bytes(rest: &str) -> Result<Vec<u8>, String> {
    if let Some(text) = rest.strip_prefix(' ') {
        return Ok(text.as_bytes().to_vec());
    }
    let (word, value) = rest.split_once(' ').unwrap_or((rest, ""));
    match word {
        "" | "empty" => Ok(Vec::new()),
        "text" => {
            let text: String = serde_json::from_str(value).map_err(|error| error.to_string())?;
            Ok(text.into_bytes())
        }
        "hex" => alloy_primitives::hex::decode(value).map_err(|error| error.to_string()),
        "repeat" => repeated(value),
        _ => Err(format!("{word}: neither text, hex, empty nor repeat")),
    }
}

/// `{"before":"[","unit":"{i}","between":",","count":3,"after":"]"}` is `[0,1,2]`.
fn repeated(value: &str) -> Result<Vec<u8>, String> {
    let made: Value = serde_json::from_str(value).map_err(|error| error.to_string())?;
    let text = |name: &str| made[name].as_str().unwrap_or_default();
    let count = made["count"].as_u64().ok_or("a repeat without a count")?;
    let unit = text("unit");
    let units = if unit.contains("{i}") || !text("between").is_empty() {
        let units: Vec<String> =
            (0..count).map(|position| unit.replace("{i}", &position.to_string())).collect();
        units.join(text("between"))
    } else {
        // Bodies of mebibytes are made of one letter.
        unit.repeat(usize::try_from(count).map_err(|error| error.to_string())?)
    };
    Ok(format!("{}{units}{}", text("before"), text("after")).into_bytes())
}

#[test]
fn a_golden_file_is_taken_apart_and_put_together_again() {
    let text = "// why\n# store: gap\n# header: accept: */*\n>> {}\n<<status 418\n<<header a: b\n<< x\n\n>>hex ff00\n<<empty\n";
    let case = Case::parse(text).unwrap();
    assert_eq!((case.store.as_str(), case.exchanges.len()), ("gap", 2));
    let answer = |status, body: &[u8]| Answer {
        status,
        head: "http/1.1 x\r\na: b".to_owned(),
        body: body.to_vec(),
    };
    let [first, second] = &case.exchanges[..] else { panic!("{case:?}") };
    assert_eq!(first.find_fault(&answer(418, b"x")), None);
    assert!(first.find_fault(&answer(200, b"x")).unwrap().contains("status 200, expected 418"));
    assert!(first.find_fault(&answer(418, b"y")).unwrap().contains("differs at byte 0"));
    assert_eq!(second.body, [0xff, 0]);
    let again = first.blessed(&answer(418, b"x")) + &second.blessed(&answer(200, b""));
    assert_eq!(again + &case.end, text);
}

#[test]
fn a_golden_file_that_says_nothing_is_refused() {
    for text in ["", "// only words\n", ">> {}\n", "<< {}\n", "nonsense\n", ">>hex x\n<< {}\n"] {
        assert!(Case::parse(text).is_err(), "{text:?}");
    }
    assert_eq!(
        repeated(r#"{"before":"[","unit":"{i}","between":",","count":3,"after":"]"}"#).unwrap(),
        b"[0,1,2]"
    );
}
