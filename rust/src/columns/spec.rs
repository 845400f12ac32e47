//! [`Spec`]: the columns of a table, and the rules that fill them.
//!
//! Python describes a table as text. In this text, a line that begins with `!` selects lines of the input:
//!
//! ```text
//! !where assistant user                     only lines whose `type` is one of these
//! !need assistant message.usage             lines of this type only if this value is an object
//! !each message.content attachment.prompt   one row per object in the first of these lists that is present (or one row for a
//!                                           string in place of the list); without `!each`, one row per line
//! ```
//!
//! Every other line is a column: its name, its type, a rule, and the rule's arguments. A path consists of keys joined by dots. A path that
//! begins with `*.` starts at the row's object in an `!each` list.
//!
//! ```text
//! path text path                               the name of the file
//! offset int offset                            the number of bytes before the line in the file
//! block int index                              the 0-based index of the row among the rows of its line
//! source text if stream session_id             the word `stream` if the path `session_id` is present (any number of such pairs)
//! session_id text first sessionId session_id   the first of these paths that has a value
//! block_type text kind *.type                  the same as `first`, but `text` in the row of a string
//! text text joined message.content content     the same as `first`, but for a list, the joined text of its objects of type `text`
//! ```

use super::batch::Type;
use super::tree::{Slot, Tree};

/// Where a column finds a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// A path in the line's object.
    Line(Slot),
    /// A path in the row's object, such as a content block.
    Block(Slot),
}

/// The rule that fills a column. The module documentation describes each rule.
#[allow(missing_docs)]
#[derive(Debug)]
pub enum Rule {
    Path,
    Offset,
    Index,
    If(Vec<(Vec<u8>, Slot)>),
    First(Vec<Origin>),
    Kind(Vec<Origin>),
    Joined(Vec<Origin>),
}

/// The description of a column.
#[derive(Debug)]
pub struct Column {
    /// The name of the column.
    pub name: String,
    /// The type of its values.
    pub kind: Type,
    /// The rule that fills it.
    pub rule: Rule,
}

/// The description of a table.
#[derive(Debug)]
pub struct Spec {
    /// The columns.
    pub columns: Vec<Column>,
    /// The keys of the line's object that columns need.
    pub line: Tree,
    /// The keys of the row's object in an `!each` list that columns need.
    pub block: Tree,
    /// The line's key `type`.
    pub tag: Slot,
    /// `!where`: the types of lines that have rows; empty for all types.
    pub types: Vec<Vec<u8>>,
    /// `!need`: a line type, and the value that must be an object for such a line to have rows.
    pub need: Option<(Vec<u8>, Slot)>,
    /// `!each`: the lists; empty if each line is one row.
    pub each: Vec<Slot>,
}

impl Spec {
    /// Parses the description of a table; `None` if it is invalid.
    #[must_use]
    pub fn new(text: &str) -> Option<Self> {
        let mut line = Tree::default();
        let mut spec = Self {
            // Want `type` and `subtype` in every table: a line that has one of them twice is then unclear, and the decoder reads it.
            tag: line.want("type")?,
            columns: Vec::new(),
            block: Tree::default(),
            types: Vec::new(),
            need: None,
            each: Vec::new(),
            line,
        };
        spec.line.want("subtype")?;
        for row in text.lines() {
            let mut words = row.split(' ');
            match words.next()? {
                "!where" => spec.types = words.map(|word| word.as_bytes().to_vec()).collect(),
                "!need" => {
                    let kind = words.next()?.into();
                    spec.need = Some((kind, spec.line.want(words.next()?)?));
                }
                "!each" => {
                    let lists = words.map(|path| spec.line.want(path));
                    spec.each = lists.collect::<Option<_>>()?;
                    if spec.each.is_empty() {
                        return None;
                    }
                }
                name => {
                    let kind = Type::of(words.next()?)?;
                    let rule = spec.rule(words.next()?, &words.collect::<Vec<_>>())?;
                    let name = name.to_owned();
                    spec.columns.push(Column { name, kind, rule });
                }
            }
        }
        Some(spec)
    }

    fn rule(&mut self, name: &str, words: &[&str]) -> Option<Rule> {
        let places = |spec: &mut Self| -> Option<Vec<Origin>> {
            words.iter().map(|path| spec.place(path)).collect()
        };
        Some(match name {
            "path" => Rule::Path,
            "offset" => Rule::Offset,
            "index" => Rule::Index,
            "first" => Rule::First(places(self)?),
            "kind" => Rule::Kind(places(self)?),
            "joined" => Rule::Joined(places(self)?),
            "if" => {
                let pairs = words.chunks_exact(2);
                let pairs = pairs.map(|pair| Some((pair[0].into(), self.line.want(pair[1])?)));
                Rule::If(pairs.collect::<Option<_>>()?)
            }
            _ => return None,
        })
    }

    fn place(&mut self, path: &str) -> Option<Origin> {
        Some(match path.strip_prefix("*.") {
            Some(path) => Origin::Block(self.block.want(path)?),
            None => Origin::Line(self.line.want(path)?),
        })
    }

    /// Returns the types of the columns.
    #[must_use]
    pub fn types(&self) -> Vec<Type> {
        self.columns.iter().map(|column| column.kind).collect()
    }
}

#[cfg(test)]
pub(super) mod tests;
