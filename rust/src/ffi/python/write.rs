//! Python's functions `encode` and `encode_lines`, and the [`Source`] that reads CPython's objects for the [`Writer`].

#![allow(clippy::inline_always)] // The functions run for every value, and have only a few instructions.

use std::ffi::c_int;
use std::marker::PhantomData;
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::ptr::{null_mut, NonNull};

use super::api::{api, flags, Cell, Containers, Method, Pointer, Size};
use super::object::{bytes, class_of, size, Classes, Object, HEADER};
use super::plan::{bytes_at, index_at, item, items_at};
use super::public::{call, method};
use super::{body, bool, builtin, none, tuple};
use crate::fallible::{collect, push};
use crate::simd::{Ascii, Words};
use crate::typed::{Field, FieldSlot, Seen, Shape, Source, Text, Unwritten, Writer};

/// An object that stays alive and unchanged for `'a`: there is a reference to the object or its container, this thread holds the
/// interpreter's lock, and this thread does not call anything that could run other code.
#[derive(Clone, Copy)]
struct Still<'a>(NonNull<std::ffi::c_void>, PhantomData<&'a ()>);

impl<'a> Still<'a> {
    /// # Safety
    ///
    /// `pointer` must point to an object that stays alive and unchanged for `'a`.
    #[inline]
    unsafe fn new(pointer: Pointer) -> Self {
        // SAFETY: an object is not null.
        Self(unsafe { NonNull::new_unchecked(pointer) }, PhantomData)
    }

    #[inline]
    fn pointer(self) -> Pointer {
        self.0.as_ptr()
    }

    /// Returns a word of the object.
    ///
    /// # Safety
    ///
    /// The object must have more than `index` machine words.
    #[inline]
    unsafe fn word(self, index: usize) -> Pointer {
        // SAFETY: the caller guarantees that the object has this word.
        unsafe { self.pointer().cast::<Pointer>().add(index).read() }
    }

    #[inline]
    fn class(self) -> Pointer {
        // SAFETY: the object is alive.
        unsafe { class_of(self.pointer()) }
    }

    /// Returns the [`flags`] of a string.
    ///
    /// # Safety
    ///
    /// The object must be a string.
    #[inline(always)]
    unsafe fn flags(self) -> u32 {
        // SAFETY: the caller guarantees a string.
        unsafe { self.pointer().cast::<u32>().add(2 * flags::WORD).read() }
    }

    /// Returns the text of a compact ASCII string; `None` for any other string. `front` is where the memory of an [`Ascii`] begins.
    ///
    /// # Safety
    ///
    /// The object must be a string, and its characters must begin [`Ascii::FRONT`] bytes after `front`.
    #[inline(always)]
    unsafe fn ascii(self, front: usize) -> Option<Ascii<'a>> {
        // SAFETY: `load` tested that strings have the layout of `flags`. A string has as many characters as its length says, and does not
        // change. The bytes before the characters are the object's header. A length is never negative.
        unsafe {
            if self.flags() & flags::ASCII_TOO != flags::ASCII_TOO {
                return None;
            }
            let len = self.word(flags::LENGTH) as usize;
            std::hint::assert_unchecked(len < usize::MAX / 2);
            let memory = self.pointer().cast::<u8>().add(front);
            // This spares a test for null, which would stand for `None`.
            std::hint::assert_unchecked(!memory.is_null());
            let memory = std::slice::from_raw_parts(memory, Ascii::FRONT + len);
            Some(Ascii::after_front(memory).unwrap_unchecked())
        }
    }

    /// Returns the UTF-8 that CPython keeps for a compact string that is not ASCII, or its characters if CPython has no UTF-8 yet.
    /// Returns `None` for a string that is not compact.
    ///
    /// # Safety
    ///
    /// The object must be a string.
    unsafe fn text(self) -> Option<Text<'a>> {
        // SAFETY: `load` tested that strings have the layout of `flags`. The two lengths in a string are those of its characters and of its
        // UTF-8.
        unsafe {
            let bits = self.flags();
            let len = self.word(flags::LENGTH) as usize;
            let at = |from: usize| self.pointer().cast::<u8>().add(from);
            if bits & flags::COMPACT == 0 {
                return None;
            }
            let utf8 = api().characters / size_of::<Pointer>();
            let made = self.word(utf8 + 1);
            if !made.is_null() {
                let len = self.word(utf8) as usize;
                return Some(Text::Utf8(std::slice::from_raw_parts(made.cast(), len)));
            }
            let from = at(api().wide_characters?);
            Some(match flags::width(bits) {
                1 => Text::Latin(std::slice::from_raw_parts(from, len)),
                2 => Text::Wide(std::slice::from_raw_parts(from.cast(), len)),
                4 => Text::Full(std::slice::from_raw_parts(from.cast(), len)),
                _ => return None,
            })
        }
    }
}

/// Returns the value of an int of any size; [`Seen::Other`] if it has more than 64 bits.
#[inline(never)]
fn whole_number(value: Still<'_>) -> Seen<Still<'_>> {
    let mut overflow: c_int = 0;
    // SAFETY: the int is alive, and this thread holds the interpreter's lock.
    let number =
        unsafe { (api().PyLong_AsLongLongAndOverflow)(value.pointer(), &raw mut overflow) };
    if overflow == 0 {
        Seen::Int(number)
    } else {
        Seen::Other
    }
}

/// Returns [`Field::Emptied`]. A call of this function tells the compiler to test for this rare case with a branch.
#[cold]
#[inline(never)]
fn emptied<'a>() -> Field<Still<'a>> {
    Field::Emptied
}

/// `Py_TPFLAGS_DICT_SUBCLASS`.
const IS_DICT: u64 = 1 << 29;

/// The fields of a class, as the writer needs them.
struct Fields {
    /// The places of all fields. `kept` keeps the values of `omitted` alive.
    all: Vec<FieldSlot>,
    /// The slot of the dict with keys that have no field.
    extra: usize,
    /// The places of the fields that are not [known](Source::is_known), and of `extra`. The places are in groups of four, and the last
    /// place is repeated to fill the last group.
    unknown: Vec<[FieldSlot; 4]>,
    #[allow(dead_code)] // This field only keeps the values alive.
    kept: Vec<Object>,
}

impl Fields {
    /// Returns these fields. No field is known yet. Returns `None` if memory runs out.
    fn new(all: Vec<FieldSlot>, extra: usize, kept: Vec<Object>) -> Option<Self> {
        let mut fields = Self {
            all,
            extra,
            unknown: Vec::new(),
            kept,
        };
        fields.know(&[])?;
        Some(fields)
    }

    /// Makes the fields with these indexes known, and no others. If memory runs out, returns `None` and changes nothing.
    fn know(&mut self, indexes: &[usize]) -> Option<()> {
        let extra = FieldSlot {
            slot: self.extra,
            omitted: api()._Py_NoneStruct as usize,
        };
        let mut unknown = Vec::new();
        unknown.try_reserve_exact(self.all.len() + 1).ok()?;
        let others = (self.all.iter().enumerate()).filter(|(index, _)| !indexes.contains(index));
        unknown.extend(others.map(|(_, place)| *place).chain([extra]));
        let four = |some: &[FieldSlot]| [0, 1, 2, 3].map(|index| some[index.min(some.len() - 1)]);
        self.unknown = collect(unknown.chunks(4).map(four)).ok()?;
        Some(())
    }
}

/// The shape of a class that is not written natively.
const NO_SHAPE: usize = usize::MAX;

/// Reads CPython's objects.
struct Objects {
    /// The shape of each class, which may be [`NO_SHAPE`].
    classes: Classes,
    /// The metaclass of all classes that may have a shape.
    meta: Object,
    /// The value of an absent key, msgspec's `UNSET`.
    unset: Object,
}

impl Objects {
    /// Returns the type of a value whose class has no shape and is not a JSON type, such as a subclass of `dict`.
    #[inline(never)]
    fn of_class<'a>(&self, class: Still<'a>) -> Seen<Still<'a>> {
        if self.classes.get(class.pointer() as usize).is_some() {
            return Seen::Other;
        }
        // SAFETY: both are live classes, because the class of a class is a class. This thread holds the interpreter's lock.
        if unsafe { (api().PyType_IsSubtype)(class.class(), self.meta.pointer()) } != 0 {
            return Seen::Unplanned(class);
        }
        // Like msgspec, this does not call methods that such a class overrides. SAFETY: the object is a live class.
        #[allow(clippy::useless_conversion)] // Useless only where a C long has 64 bits.
        if u64::from(unsafe { (api().PyType_GetFlags)(class.pointer()) }) & IS_DICT != 0 {
            return Seen::Dict;
        }
        Seen::Other
    }
}

impl<'a> Source<'a> for Objects {
    type Value = Still<'a>;
    type Fields = Fields;
    type Kept = Object;

    #[inline(always)]
    fn look(&self, value: Still<'a>) -> Seen<Still<'a>> {
        let class = value.class();
        let api = api();
        // SAFETY: this thread holds the interpreter's lock. Each function gets a live object of its class, and runs no other code.
        unsafe {
            if class == api.PyUnicode_Type {
                return Seen::Text;
            }
            if value.pointer() == api._Py_NoneStruct {
                return Seen::Null;
            }
            if class == api.PyList_Type {
                return Seen::List;
            }
            if class == api.PyDict_Type {
                return Seen::Dict;
            }
            if class == api.PyLong_Type {
                if let Some(number) = api.digit.value(value.pointer()) {
                    return Seen::Int(number);
                }
                return whole_number(value);
            }
            if class == api.PyFloat_Type {
                return Seen::Float((api.PyFloat_AsDouble)(value.pointer()));
            }
            if value.pointer() == api._Py_TrueStruct {
                return Seen::Bool(true);
            }
            if value.pointer() == api._Py_FalseStruct {
                return Seen::Bool(false);
            }
            match self.shape(value) {
                Some(shape) => Seen::Record(shape),
                None => self.of_class(Still::new(class)),
            }
        }
    }

    #[inline(always)]
    fn ascii(&self) -> impl Fn(Still<'a>) -> Option<Ascii<'a>> + Copy {
        let class = api().PyUnicode_Type;
        let front = api().characters - Ascii::FRONT;
        move |value| {
            if value.class() != class {
                return None;
            }
            // SAFETY: the value is a string, and its characters begin at the offset `characters`.
            unsafe { value.ascii(front) }
        }
    }

    fn text(&self, value: Still<'a>) -> Option<Text<'a>> {
        if value.class() != api().PyUnicode_Type {
            return None;
        }
        // SAFETY: it is a string.
        unsafe { value.text() }
    }

    #[inline(always)]
    fn shape(&self, record: Still<'a>) -> Option<usize> {
        let shape = self.classes.get(record.class() as usize);
        shape.filter(|&shape| shape != NO_SHAPE)
    }

    #[inline(always)]
    fn next(
        &self,
        record: Still<'a>,
        fields: &Fields,
        from: usize,
    ) -> Option<(usize, Option<Still<'a>>)> {
        let places = fields.all.iter().enumerate().skip(from);
        for (index, place) in places {
            match self.field(record, place) {
                Field::Value(value) => return Some((index, Some(value))),
                Field::Emptied => return Some((index, None)),
                Field::Absent => {}
            }
        }
        None
    }

    #[inline(always)]
    fn extra(&self, record: Still<'a>, fields: &Fields) -> Option<Still<'a>> {
        // SAFETY: as in `field`. For an emptied slot, returns a value that is not a dict.
        unsafe {
            let extra = record.word(fields.extra);
            (extra != api()._Py_NoneStruct).then(|| {
                let odd = api()._Py_TrueStruct;
                Still::new(if extra.is_null() { odd } else { extra })
            })
        }
    }

    #[inline(always)]
    fn is_known(&self, record: Still<'a>, fields: &Fields) -> bool {
        // SAFETY: as in `field`.
        let differs =
            |place: &FieldSlot| unsafe { record.word(place.slot) as usize ^ place.omitted };
        let differ =
            |[a, b, c, d]: &[FieldSlot; 4]| differs(a) | differs(b) | differs(c) | differs(d);
        fields.unknown.iter().all(|four| differ(four) == 0)
    }

    fn known_with(&self, record: Still<'a>, fields: &Fields) -> Option<Vec<usize>> {
        let mut known = Vec::new();
        let is_unknown = |place: &FieldSlot| {
            let mut unknown = fields.unknown.iter().flatten();
            unknown.any(|other| other.slot == place.slot)
        };
        for (index, place) in fields.all.iter().enumerate() {
            if !is_unknown(place) || !matches!(self.field(record, place), Field::Absent) {
                push(&mut known, index).ok()?;
            }
        }
        Some(known)
    }

    fn know(&self, indexes: &[usize], fields: &mut Fields) -> Option<()> {
        fields.know(indexes)
    }

    #[inline(always)]
    fn field(&self, record: Still<'a>, at: &FieldSlot) -> Field<Still<'a>> {
        // SAFETY: `slots_of` found the slots in an instance. Each contains an object or null.
        unsafe {
            let value = record.word(at.slot);
            if value as usize == at.omitted || value == self.unset.pointer() {
                return Field::Absent;
            }
            if value.is_null() {
                return emptied();
            }
            Field::Value(Still::new(value))
        }
    }

    fn place(&self, fields: &Fields, index: usize) -> FieldSlot {
        fields.all[index]
    }

    #[inline(always)]
    fn identity(&self, text: Still<'a>) -> u64 {
        text.pointer() as u64
    }

    fn keep(&self, value: Still<'a>) -> Object {
        // SAFETY: a `Still` refers to an object that is alive during `'a`.
        unsafe { Object::borrowed(value.pointer()) }
    }

    #[inline(always)]
    fn items(&self, list: Still<'a>) -> impl Iterator<Item = Still<'a>> {
        // SAFETY: `can_read` was true before the writer was made, so lists have the known layout. The list does not change during `'a`.
        let items = unsafe { Containers::items(list.pointer()) };
        // SAFETY: a list keeps its items alive.
        items.iter().map(|&item| unsafe { Still::new(item) })
    }

    #[inline(always)]
    fn entries(&self, dict: Still<'a>) -> Option<impl Iterator<Item = (Still<'a>, Still<'a>)>> {
        // SAFETY: a `Still` refers to a live dict, which does not change during `'a`, so its entries do not change either.
        unsafe {
            let mut left = api().containers.entries(dict.pointer())?;
            Some(std::iter::from_fn(move || {
                let (key, value) = left.next()?;
                Some((Still::new(key), Still::new(value)))
            }))
        }
    }

    fn pairs(&self, dict: Still<'a>) -> impl Iterator<Item = (Still<'a>, Still<'a>)> {
        let mut at: Size = 0;
        // SAFETY: a `Still` refers to a live dict, which does not change during `'a`. `PyDict_Next` runs no other code.
        std::iter::from_fn(move || unsafe {
            let (mut key, mut value) = (null_mut(), null_mut());
            let is_found =
                (api().PyDict_Next)(dict.pointer(), &raw mut at, &raw mut key, &raw mut value);
            (is_found != 0).then(|| (Still::new(key), Still::new(value)))
        })
    }
}

/// The state that the functions share. It is static, because a function that is bound to an object cannot be pickled by name.
struct State {
    writer: Writer<Objects, Fields, Object>,
    /// True while the state is in use, and after `stop` was called. The fallback then encodes everything.
    is_busy: bool,
    /// The class that needs a shape before the last message can be written natively.
    wanted: Option<Object>,
    /// The Python function that encodes everything else.
    fallback: Object,
}

static STATE: Cell<State> = Cell::new();

/// Returns the state and marks it as in use; `None` if it is already in use.
///
/// # Safety
///
/// The caller must hold the interpreter's lock. It must clear `is_busy`, and must not use the state after that.
unsafe fn state<'a>() -> Option<&'a mut State> {
    // SAFETY: the caller holds the lock, and `is_busy` admits one caller at a time.
    unsafe {
        let state = (*STATE.0.get()).as_mut()?;
        if state.is_busy {
            return None;
        }
        state.is_busy = true;
        Some(state)
    }
}

/// Returns whether the strings and lists of this interpreter have a layout that the writer can read.
pub fn can_read() -> bool {
    api().wide_characters.is_some() && api().containers.list
}

/// The functions of the writer, besides `encode`.
static FUNCTIONS: [Method; 4] = [
    Method::takes_one(c"encode_lines", encode_lines),
    Method::takes_one(c"add", add),
    Method::takes_none(c"wanted", wanted),
    Method::takes_none(c"stop", stop),
];

/// `new_writer((fallback, module, doc, meta, unset))`: returns a tuple of `encode` and the other [`FUNCTIONS`] of the writer.
pub unsafe extern "C" fn new_writer(_: Pointer, argument: Pointer) -> Pointer {
    // SAFETY: CPython calls this with a live argument.
    body(|| unsafe {
        let argument = Object::borrowed(argument);
        let state = State {
            writer: Writer::new(Objects {
                classes: Classes::default(),
                meta: item(&argument, 3)?,
                unset: item(&argument, 4)?,
            }),
            is_busy: false,
            wanted: None,
            fallback: item(&argument, 0)?,
        };
        let module = item(&argument, 1)?;
        let encode = method(c"encode", encode, bytes_at(&argument, 2)?)?;
        let functions = std::iter::once(encode).chain(&FUNCTIONS);
        let functions = functions.map(|method| builtin(method, None, Some(&module)));
        let functions = functions.collect::<Option<Vec<_>>>()?;
        STATE.replace(state);
        tuple(functions)
    })
}

/// Once the written lines have this many bytes, they are appended to the result.
const PART: usize = 32 * 1024;

/// Appends `more` to a `bytes` object whose first `usize` bytes are used. Resizes the object to `room` bytes if it is too small, or to its
/// exact length if `room` is 0. Returns `None` if memory runs out.
fn appended(bytes: Option<(Object, usize)>, more: &[u8], room: usize) -> Option<(Object, usize)> {
    // SAFETY: this thread holds the interpreter's lock. No other code has a reference to the bytes, and the copy ends within their length.
    // A failed resize sets the pointer to null, and `owned` then returns `None`.
    unsafe {
        let (bytes, len) = match bytes {
            Some(bytes) => bytes,
            None if room == 0 => {
                let bytes =
                    (api().PyBytes_FromStringAndSize)(more.as_ptr().cast(), size(more.len()));
                return Some((Object::owned(bytes)?, more.len()));
            }
            None => {
                let bytes = (api().PyBytes_FromStringAndSize)(std::ptr::null(), size(room));
                (Object::owned(bytes)?, 0)
            }
        };
        let end = len + more.len();
        let (mut data, mut there) = (null_mut(), 0);
        (api().PyBytes_AsStringAndSize)(bytes.pointer(), &raw mut data, &raw mut there);
        let mut bytes = bytes.release();
        if there < size(end) || room == 0 {
            (api()._PyBytes_Resize)(&raw mut bytes, size(room.max(end)));
        }
        let bytes = Object::owned(bytes)?;
        (api().PyBytes_AsStringAndSize)(bytes.pointer(), &raw mut data, &raw mut there);
        std::ptr::copy_nonoverlapping(more.as_ptr(), data.cast::<u8>().add(len), more.len());
        Some((bytes, end))
    }
}

/// Returns the lines of the messages before the first message that the fallback must encode, and how many there are. Returns `None` if
/// memory runs out, or while the writer is in use.
fn lines<'a>(messages: impl ExactSizeIterator<Item = Still<'a>>) -> Option<(Object, usize)> {
    // SAFETY: only functions that CPython calls call this, with the lock held; `end` clears `is_busy`.
    let state = unsafe { state()? };
    let (mut unwritten, mut count) = (None, 0);
    let write = |writer: &mut Writer<Objects, Fields, Object>| {
        let mut lines: Option<(Object, usize)> = None;
        let all = messages.len();
        for message in messages {
            if let Err(error) = writer.line(message) {
                unwritten = Some(error);
                break;
            }
            count += 1;
            if writer.written().len() > PART {
                // Make room for all lines, assuming that the other lines are as long as these, but for at most 16 times these bytes.
                let end = lines.as_ref().map_or(0, |(_, end)| *end) + writer.written().len();
                let room = (end / count + 1).saturating_mul(all);
                lines = Some(appended(
                    lines,
                    writer.written(),
                    room.clamp(2 * end, 16 * end),
                )?);
                writer.clear();
            }
        }
        appended(lines, writer.written(), 0)
    };
    let lines = write(&mut state.writer);
    drop(end(state, unwritten.as_ref()));
    lines.map(|(lines, _)| (lines, count))
}

/// Returns the line of a message. Returns `None` if the fallback must encode the message, if memory runs out, or while the writer is in
/// use.
#[inline(always)]
fn line(message: Still<'_>) -> Option<Object> {
    // SAFETY: as in `lines`.
    let state = unsafe { state()? };
    let line = match state.writer.line(message) {
        Ok(()) => bytes(state.writer.written()),
        Err(unwritten) => {
            drop(end(state, Some(&unwritten)));
            return None;
        }
    };
    state.writer.clear();
    state.is_busy = false;
    line
}

/// Marks the state as not in use. Remembers the class that needs a shape, if there is one. Returns the class that was remembered before.
/// The caller must drop it last, because freeing a class may run code that encodes.
#[inline(never)]
fn end(state: &mut State, unwritten: Option<&Unwritten<Still<'_>>>) -> Option<Object> {
    let before = match unwritten {
        // SAFETY: the message keeps its class alive.
        Some(Unwritten::Wants(class)) => unsafe {
            state.wanted.replace(Object::borrowed(class.pointer()))
        },
        _ => None,
    };
    state.writer.clear();
    state.is_busy = false;
    before
}

/// `encode(message)`.
unsafe extern "C" fn encode(
    _: Pointer,
    arguments: *const Pointer,
    count: Size,
    names: Pointer,
) -> Pointer {
    // SAFETY: CPython calls this with `count` live positional arguments, followed by the arguments for `names`.
    unsafe {
        if count == 1 && names.is_null() {
            let run = || line(Still::new(*arguments));
            if let Ok(Some(line)) = catch_unwind(AssertUnwindSafe(run)) {
                return line.release();
            }
        }
        let Some(fallback) = (*STATE.0.get())
            .as_ref()
            .map(|state| state.fallback.clone())
        else {
            return null_mut();
        };
        call(&fallback, arguments, count.unsigned_abs(), names)
    }
}

/// `encode_lines((messages, start))`: returns `(lines, end)`, the lines of the messages from `start` up to the first message that msgspec
/// must encode. `lines` is None if there are none.
unsafe extern "C" fn encode_lines(_: Pointer, argument: Pointer) -> Pointer {
    // SAFETY: CPython calls this with a live argument; the items of a list stay alive while no other code runs.
    body(|| unsafe {
        let argument = Object::borrowed(argument);
        let messages = item(&argument, 0)?;
        let start = index_at(&argument, 1)?;
        if messages.class() != api().PyList_Type {
            return None;
        }
        let messages = Containers::items(messages.pointer());
        let messages = messages.get(start..).unwrap_or_default();
        let (lines, count) = lines(messages.iter().map(|&message| Still::new(message))).unzip();
        let end = super::number(start + count.unwrap_or(0));
        tuple([lines.unwrap_or_else(none), super::int(end)?])
    })
}

/// `stop()`: from now on the fallback encodes every message.
unsafe extern "C" fn stop(_: Pointer, _: Pointer) -> Pointer {
    // SAFETY: CPython calls this with the lock held. `is_busy` stays true, so no later call uses the state.
    body(|| unsafe {
        state();
        Some(none())
    })
}

/// `wanted()`: returns and forgets [`State::wanted`]; None if no class needs a shape.
unsafe extern "C" fn wanted(_: Pointer, _: Pointer) -> Pointer {
    // SAFETY: as above.
    body(|| unsafe {
        let wanted = state().and_then(|state| {
            state.is_busy = false;
            state.wanted.take()
        });
        Some(wanted.unwrap_or_else(none))
    })
}

/// `add((class, shape))`: sets how a class is written and returns True. Returns False while the writer is in use.
///
/// `shape` is None for a class that is not written natively, otherwise `(words, opening, tag_key, fields, extra)`. A field is `(key, slot,
/// default)`: the key as `,"key":`, and the value for which the field is omitted. `extra` is the slot of the dict with keys that have no
/// field.
unsafe extern "C" fn add(_: Pointer, argument: Pointer) -> Pointer {
    // SAFETY: as above.
    body(|| unsafe {
        let argument = Object::borrowed(argument);
        let class = item(&argument, 0)?;
        let row = item(&argument, 1)?;
        let shape = if row.pointer() == api()._Py_NoneStruct {
            None
        } else {
            let words = index_at(&row, 0)?;
            let is_slot = |slot: &usize| (HEADER..words).contains(slot);
            let extra = index_at(&row, 4).filter(is_slot)?;
            let (mut keys, mut all, mut kept) = (Vec::new(), Vec::new(), Vec::new());
            for field in items_at(&row, 3)? {
                keys.push(Words::new(&bytes_at(&field, 0)?));
                let slot = index_at(&field, 1).filter(is_slot)?;
                let omitted = item(&field, 2)?;
                all.push(FieldSlot {
                    slot,
                    omitted: omitted.pointer() as usize,
                });
                kept.push(omitted);
            }
            let fields = Fields::new(all, extra, kept)?;
            Some(Shape::new(
                &bytes_at(&row, 1)?,
                &bytes_at(&row, 2)?,
                keys,
                fields,
            ))
        };
        let Some(state) = state() else {
            return Some(bool(false));
        };
        let writer = &mut state.writer;
        // If a class already has a shape, it keeps that shape.
        if writer
            .source
            .classes
            .get(class.pointer() as usize)
            .is_none()
        {
            let number = shape.map_or(NO_SHAPE, |shape| writer.add(shape));
            writer.source.classes.add(class, number);
        }
        state.is_busy = false;
        Some(bool(true))
    })
}
