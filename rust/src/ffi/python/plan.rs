//! Turns the tuples of plans.py into additions to the plan of a reader. The items of a tuple are in the same order as the Rust struct's
//! fields.

use super::api::{api, Size};
use super::object::{Object, Python, StructClass, HEADER};
use super::{bytes_of, none};
use crate::simd::Key;
use crate::typed::plan::{Class, Field, Kind, Member, Plan, Shape, Top};
use crate::typed::Reader;

/// Adds `(classes, first_kind, kinds, shapes, tops, open_types, unknown)` to the plan of a reader:
///
/// * `classes`: the number of classes after the addition.
/// * `first_kind`: the index of the first item of `kinds`. The items replace existing kinds from this index on.
/// * `kinds`: for each new kind `(may_be, item, members, tag_key, words, unknown)`. A member is `(class, tag)`. A word is
///   `(bytes, string)`. `unknown` is None or `(class, reason)`.
/// * `shapes`: for each newly planned class `(class, (type, words, tag, fields, extra))`, or `(class, None)` if the lines of the class
///   always fall through. A field is `(key, kind, slot, defaults)`. Its kind is None if the field is the tag. `defaults` has one item or is
///   empty. `extra` is the slot of the dict with all other keys, or None.
/// * `tops`: for each new class of a line `(type, subtype, class)`. The subtype may be None.
/// * `open_types`: types such as `system` that have a class for subtypes that are not in `tops`.
/// * `unknown`: None or `(class of unknown lines, reason for an unknown type, reason for an unknown subtype)`.
///
/// Returns `None` for any other tuple.
pub fn change(reader: &mut Reader<Python>, additions: &Object) -> Option<()> {
    let classes = index_at(additions, 0)?;
    let first_kind = index_at(additions, 1)?;
    let kinds = items_at(additions, 2)?
        .iter()
        .map(kind)
        .collect::<Option<Vec<_>>>()?;
    let mut shapes = Vec::new();
    for row in items_at(additions, 3)? {
        shapes.push((
            index_at(&row, 0)?,
            shape(&mut reader.builder, &item(&row, 1)?)?,
        ));
    }
    let tops = items_at(additions, 4)?
        .iter()
        .map(top)
        .collect::<Option<Vec<_>>>()?;
    let open_types = items_at(additions, 5)?
        .iter()
        .map(bytes)
        .collect::<Option<Vec<_>>>()?;
    let unknown = match optional(item(additions, 6)?) {
        Some(row) => Some((item(&row, 0)?, item(&row, 1)?, item(&row, 2)?)),
        None => None,
    };
    reader.change_plan(|plan: &mut Plan<Object, StructClass>| {
        plan.classes.resize_with(classes, || Class::Unplanned);
        plan.kinds.truncate(first_kind);
        plan.kinds.extend(kinds);
        for (id, shape) in shapes {
            // The plan of a class never changes: the reader remembers fields by their indexes.
            if !matches!(plan.classes.get(id), Some(Class::Unplanned)) {
                continue;
            }
            plan.classes[id] = match shape {
                None => Class::Refused,
                Some((class, tag, fields, required, extra)) => {
                    let start = plan.fields.len();
                    plan.fields.extend(fields);
                    Class::Planned(Shape {
                        class,
                        fields: start..plan.fields.len(),
                        required,
                        tag,
                        extra,
                    })
                }
            };
        }
        plan.tops.extend(tops);
        plan.open_types.extend(open_types);
        plan.unknown = unknown.or(plan.unknown.take());
    });
    Some(())
}

fn kind(row: &Object) -> Option<Kind<Object>> {
    let tag_key = bytes_at(row, 3)?;
    let member = |row: &Object| {
        let tag = bytes_at(row, 1)?;
        Some(Member {
            class: index_at(row, 0)?,
            opening: [b"{\"", tag_key.as_slice(), b"\":\"", tag.as_slice(), b"\""].concat(),
            tag,
        })
    };
    Some(Kind {
        may_be: u32::try_from(int_at(row, 0)?).ok()?,
        item: index_at(row, 1)?,
        classes: items_at(row, 2)?
            .iter()
            .map(member)
            .collect::<Option<_>>()?,
        words: items_at(row, 4)?
            .iter()
            .map(|row| Some((bytes_at(row, 0)?, item(row, 1)?)))
            .collect::<Option<_>>()?,
        unknown: match optional(item(row, 5)?) {
            Some(row) => Some((item(&row, 0)?, item(&row, 1)?)),
            None => None,
        },
        tag_key,
    })
}

type ShapeParts = (StructClass, Vec<u8>, Vec<Field>, u128, Option<usize>);

#[allow(clippy::option_option)] // `None` is a row of another form, `Some(None)` a class that plans.py has refused.
fn shape(python: &mut Python, row: &Object) -> Option<Option<ShapeParts>> {
    let Some(row) = optional(row.clone()) else {
        return Some(None);
    };
    let rows = items_at(&row, 3)?;
    if rows.len() > 128 {
        return Some(None);
    }
    let words = index_at(&row, 1)?;
    // A required field contains None until the reader has read its value.
    let mut defaults = vec![Some(none()); words.checked_sub(HEADER)?];
    let mut required = 0;
    let mut field = |(index, row): (usize, &Object)| {
        let slot = index_at(row, 2)?;
        let kind = match optional(item(row, 1)?) {
            Some(kind) => Some(usize::try_from(int(&kind)).ok()?),
            None => None,
        };
        if kind.is_some() {
            let place = defaults.get_mut(slot.checked_sub(HEADER)?)?;
            match items_at(row, 3)?.pop() {
                Some(default) => *place = Some(default),
                None => required |= 1 << index,
            }
        }
        let key = Key::new(&bytes_at(row, 0)?);
        Some(Field { key, kind, slot })
    };
    let fields = rows.iter().enumerate().map(&mut field);
    let fields = fields.collect::<Option<_>>()?;
    let extra = match optional(item(&row, 4)?) {
        Some(slot) => Some(usize::try_from(int(&slot)).ok()?),
        None => None,
    };
    if extra.is_some_and(|slot| !(HEADER..words).contains(&slot)) {
        return None;
    }
    Some(Some((
        python.class(item(&row, 0)?, defaults),
        bytes_at(&row, 2)?,
        fields,
        required,
        extra,
    )))
}

fn top(row: &Object) -> Option<Top> {
    Some(Top {
        tag: bytes_at(row, 0)?,
        subtype: match optional(item(row, 1)?) {
            Some(subtype) => Some(bytes(&subtype)?),
            None => None,
        },
        class: index_at(row, 2)?,
    })
}

// --- tuples

/// Returns an item of a tuple; `None` if the tuple is too short or the object is not a tuple.
pub fn item(tuple: &Object, index: Size) -> Option<Object> {
    // SAFETY: see `api`. The tuple is alive, and so are its items.
    unsafe {
        let item = (api().PyTuple_GetItem)(tuple.pointer(), index);
        if item.is_null() {
            (api().PyErr_Clear)();
            return None;
        }
        Some(Object::borrowed(item))
    }
}

/// Returns all items of a tuple; `None` if the object is not a tuple.
pub fn items(tuple: &Object) -> Option<Vec<Object>> {
    // SAFETY: see `api`.
    let len = unsafe { (api().PyTuple_Size)(tuple.pointer()) };
    if len < 0 {
        // SAFETY: see `api`.
        unsafe { (api().PyErr_Clear)() };
        return None;
    }
    (0..len).map(|index| item(tuple, index)).collect()
}

/// Returns all items of the tuple at an index of `tuple`.
pub fn items_at(tuple: &Object, index: Size) -> Option<Vec<Object>> {
    items(&item(tuple, index)?)
}

fn optional(object: Object) -> Option<Object> {
    (object.pointer() != api()._Py_NoneStruct).then_some(object)
}

fn int(object: &Object) -> i64 {
    // SAFETY: see `api`. For an object that is not an int, it raises an exception and returns -1.
    unsafe {
        let value = (api().PyLong_AsLongLong)(object.pointer());
        if value == -1 {
            (api().PyErr_Clear)();
        }
        value
    }
}

fn int_at(tuple: &Object, index: Size) -> Option<i64> {
    Some(int(&item(tuple, index)?))
}

/// Returns the int at an index of a tuple; `None` if it is negative or not an int.
pub fn index_at(tuple: &Object, index: Size) -> Option<usize> {
    usize::try_from(int_at(tuple, index)?).ok()
}

fn bytes(object: &Object) -> Option<Vec<u8>> {
    // SAFETY: the object is alive while its bytes are copied.
    unsafe { bytes_of(object.pointer()).map(<[u8]>::to_vec) }
}

/// Returns a copy of the `bytes` at an index of a tuple.
pub fn bytes_at(tuple: &Object, index: Size) -> Option<Vec<u8>> {
    bytes(&item(tuple, index)?)
}
