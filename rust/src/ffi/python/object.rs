//! [`Object`]: a reference to an object of CPython. [`Python`]: the builder that makes objects for the reader.
//!
//! The basic idea is simple: an instance of a Struct consists of two words, the reference count and the class, and then one word per field
//! with the address of the field's value. The builder allocates an instance, and writes the addresses into its words.

#![allow(clippy::inline_always)] // Counting a reference takes only a few instructions.

use std::ffi::c_int;
use std::iter::empty;
use std::mem::ManuallyDrop;
use std::ptr::{null_mut, NonNull};
use std::vec::Drain;

use super::api::{api, Counting, Pointer, Size};
use crate::fallible::{boxed, collect, push, Boxed};
use crate::simd::Utf8;
use crate::typed::{Builder, MAX_DEPTH};

/// A counted reference to an object. Dropping it releases the reference.
pub struct Object(NonNull<std::ffi::c_void>);

// The stores of `memo` fit the lines of the processor's cache only with such values.
const _: () = assert!(size_of::<Option<Object>>() == size_of::<Pointer>());

impl Object {
    /// Takes over a new reference. If `pointer` is null, clears the exception and returns `None`.
    ///
    /// # Safety
    ///
    /// `pointer` must be null, or a reference that the caller owns.
    #[inline]
    pub unsafe fn owned(pointer: Pointer) -> Option<Self> {
        let object = NonNull::new(pointer).map(Self);
        if object.is_none() {
            // SAFETY: see `api`.
            unsafe { (api().PyErr_Clear)() };
        }
        object
    }

    /// Returns a new reference to an object.
    ///
    /// # Safety
    ///
    /// `pointer` must be a live object.
    #[inline]
    pub unsafe fn borrowed(pointer: Pointer) -> Self {
        // SAFETY: the caller guarantees a live object, so the pointer is not null. The reference is counted before the `Object` is created.
        unsafe {
            increase(pointer);
            Self(NonNull::new_unchecked(pointer))
        }
    }

    /// Returns the address of the object, which is alive at least as long as this reference.
    #[inline]
    pub fn pointer(&self) -> Pointer {
        self.0.as_ptr()
    }

    /// Hands the reference over to the caller, which must release it.
    #[inline]
    pub fn release(self) -> Pointer {
        let pointer = self.pointer();
        std::mem::forget(self);
        pointer
    }

    /// Returns the class of the object.
    pub fn class(&self) -> Pointer {
        // SAFETY: the object is alive as long as this reference is.
        unsafe { class_of(self.pointer()) }
    }

    /// Returns the address of the object's word with this index.
    ///
    /// # Safety
    ///
    /// The object must have more than `index` words.
    #[inline]
    pub unsafe fn slot(&self, index: usize) -> *mut Pointer {
        // SAFETY: the caller guarantees that the object has this word.
        unsafe { self.pointer().cast::<Pointer>().add(index) }
    }
}

impl Clone for Object {
    #[inline]
    fn clone(&self) -> Self {
        // SAFETY: the object is alive as long as this reference is.
        unsafe { Self::borrowed(self.pointer()) }
    }
}

impl Drop for Object {
    #[inline]
    fn drop(&mut self) {
        // SAFETY: this value owns one reference, and `drop` runs once.
        unsafe { decrease(self.pointer()) }
    }
}

#[inline(always)]
unsafe fn increase(object: Pointer) {
    // SAFETY: the caller guarantees a live object, and `load` tested where and how CPython counts its references.
    unsafe {
        match api().counting {
            Counting::Word => *object.cast::<i64>() += 1,
            Counting::HalfWord => {
                let count = object.cast::<u32>();
                let more = (*count).wrapping_add(1);
                if more != 0 {
                    *count = more;
                }
            }
            Counting::Functions => (api().Py_IncRef)(object),
        }
    }
}

/// Adds `count` to an object's reference count.
#[inline(always)]
unsafe fn increase_by(object: Pointer, count: usize) {
    // SAFETY: as in `increase`.
    unsafe {
        match api().counting {
            Counting::Word => *object.cast::<usize>() += count,
            Counting::HalfWord => {
                #[allow(clippy::cast_possible_truncation)] // No class has so many fields.
                if let Some(more) = object.cast::<u32>().read().checked_add(count as u32) {
                    *object.cast::<u32>() = more;
                }
            }
            Counting::Functions => (0..count).for_each(|_| (api().Py_IncRef)(object)),
        }
    }
}

#[inline(always)]
unsafe fn decrease(object: Pointer) {
    // SAFETY: the caller owns a reference. `load` has tested how CPython counts. For the last reference, CPython's function frees the object.
    unsafe {
        match api().counting {
            Counting::Word if *object.cast::<i64>() > 1 => *object.cast::<i64>() -= 1,
            Counting::HalfWord if *object.cast::<i32>() != 1 => {
                let count = object.cast::<i32>();
                if *count > 0 {
                    *count -= 1;
                }
            }
            _ => (api().Py_DecRef)(object),
        }
    }
}

/// Returns a new `bytes` object with a copy of `data`; `None` if memory runs out.
pub fn bytes(data: &[u8]) -> Option<Object> {
    // SAFETY: the caller holds the lock, see `api`. CPython copies the bytes before it returns.
    unsafe {
        let bytes = (api().PyBytes_FromStringAndSize)(data.as_ptr().cast(), size(data.len()));
        Object::owned(bytes)
    }
}

/// A class of Structs, and the values of a new instance. An instance consists of the [`HEADER`], followed by a slot for each field.
pub struct StructClass {
    class: Object,
    /// The value of each slot, or null.
    image: Vec<Pointer>,
    /// The different objects in `image`.
    shared: Vec<SlotValue>,
}

/// A value that some slots of each new instance share.
struct SlotValue {
    value: Object,
    /// The number of slots with the value that do not belong to a field.
    slots: usize,
    /// A bit for each field whose slot has the value.
    fields: [u64; 2],
}

impl StructClass {
    /// `values` has one item per slot. `fields` has the bit of each field (see [`finish`](Builder::finish)), and its slot. Returns `None` if
    /// memory runs out.
    fn new(
        class: Object,
        values: Vec<Option<Object>>,
        fields: impl Iterator<Item = (usize, usize)>,
    ) -> Option<Self> {
        let address = |value: &Option<Object>| value.as_ref().map_or(null_mut(), Object::pointer);
        let image = collect(values.iter().map(address)).ok()?;
        let mut bits = collect((0..HEADER + values.len()).map(|_| None)).ok()?;
        for (bit, slot) in fields {
            bits[slot] = Some(bit);
        }
        let mut shared: Vec<SlotValue> = Vec::new();
        for (value, bit) in values.into_iter().zip(&bits[HEADER..]) {
            let Some(value) = value else { continue };
            let known = (shared.iter()).position(|it| it.value.pointer() == value.pointer());
            let known = if let Some(known) = known {
                known
            } else {
                let new = SlotValue {
                    value,
                    slots: 0,
                    fields: [0; 2],
                };
                push(&mut shared, new).ok()?;
                shared.len() - 1
            };
            match bit {
                Some(bit) => shared[known].fields[bit / 64] |= 1 << (bit % 64),
                None => shared[known].slots += 1,
            }
        }
        Some(Self {
            class,
            image,
            shared,
        })
    }

    /// Returns a new instance that contains the values of `image` but owns no references to them. Call [`count`](Self::count) before other
    /// code sees or drops it.
    ///
    /// # Safety
    ///
    /// The caller must hold the lock (see `api`). If the instance is seen or dropped, [`count`](Self::count) must have been called for it.
    #[inline]
    unsafe fn uncounted(&self) -> Option<Object> {
        // SAFETY: see `api`. Python computes the length of `image` from the class's `__basicsize__`, so each instance has this many slots.
        // `shared` keeps the objects of `image` alive.
        unsafe {
            let object = Object::owned((api()._PyObject_New)(self.class.pointer()))?;
            object
                .slot(HEADER)
                .copy_from_nonoverlapping(self.image.as_ptr(), self.image.len());
            Some(object)
        }
    }

    /// Counts the references of an [`uncounted`](Self::uncounted) instance to the values of `image`, except to those that the fields in
    /// `set` replaced.
    ///
    /// # Safety
    ///
    /// The caller must hold the lock (see `api`), and must call this once for an instance. A field's bit in `set` must be 1 exactly if the
    /// field's slot no longer contains the value of `image`. All other slots must still contain their values.
    #[inline]
    unsafe fn count(&self, set: [u64; 2]) {
        for shared in &self.shared {
            let mut count = shared.slots;
            for (fields, set) in shared.fields.iter().zip(set) {
                let others = fields & !set;
                // Without POPCNT, counting bits takes a dozen instructions.
                if others != 0 {
                    count += others.count_ones() as usize;
                }
            }
            // SAFETY: `shared` keeps the object alive.
            unsafe { increase_by(shared.value.pointer(), count) };
        }
    }

    /// Returns a new instance with the values of `image`.
    #[inline]
    fn instance(&self) -> Option<Object> {
        // SAFETY: see `api`. The instance contains all values of `image`, and no other code has it yet.
        unsafe {
            let object = self.uncounted()?;
            self.count([0; 2]);
            Some(object)
        }
    }
}

/// A record or dict that [`stamp`](Builder::stamp) copies, with new values in some slots.
pub enum Template {
    /// A Struct.
    Struct(StructTemplate),
    /// A dict, and the keys that get new values in each copy.
    Dict(Object, Vec<Object>),
    /// A value that each copy is a deep copy of.
    Deep(DeepTemplate),
}

/// A Struct that [`stamp`](Builder::stamp) copies.
pub struct StructTemplate {
    /// The class, with the values of a copy. The slots in `slots` are null.
    class: StructClass,
    /// The slots that get new values in each copy.
    slots: Vec<usize>,
}

/// The number of words before an instance's first slot: the reference count and the class.
pub const HEADER: usize = 2;

/// Makes CPython's objects.
#[derive(Default)]
pub struct Python {
    /// The number of words in the instances of each class.
    words: Classes,
    /// The attribute name `_reason`, created when it is first needed.
    reason: Option<Object>,
    /// How many more lists, dicts and Structs the current [`deep_template`](Builder::deep_template) may find.
    left: usize,
}

/// A hash table from classes to numbers.
pub struct Classes {
    /// `(address of a class, number)`; the address is 0 in an empty place. At most half of the places are used.
    places: Vec<(usize, usize)>,
    /// Keeps the classes alive, so that no other class gets the same address.
    kept: Vec<Object>,
}

impl Default for Classes {
    fn default() -> Self {
        Self {
            places: vec![(0, 0); 64],
            kept: Vec::new(),
        }
    }
}

impl Classes {
    /// Returns the index of a class in the table, or of the empty place where it belongs.
    #[inline(always)]
    fn place(places: &[(usize, usize)], class: usize) -> usize {
        let last = places.len() - 1;
        // Objects are aligned, so the lowest four bits of their addresses are always the same. The number of places is a power of two.
        let mut at = (class >> 4 ^ class >> 10) & last;
        while places[at].0 != class && places[at].0 != 0 {
            at = (at + 1) & last;
        }
        at
    }

    /// Returns the number of the class with this address; `None` if the class was not added.
    #[inline(always)]
    pub fn get(&self, class: usize) -> Option<usize> {
        let (found, number) = self.places[Self::place(&self.places, class)];
        (found == class).then_some(number)
    }

    /// Adds a class, or changes its number.
    pub fn add(&mut self, class: Object, number: usize) {
        if 2 * self.kept.len() >= self.places.len() {
            let mut more = vec![(0, 0); 2 * self.places.len()];
            for &(class, number) in self.places.iter().filter(|(class, _)| *class != 0) {
                let at = Self::place(&more, class);
                more[at] = (class, number);
            }
            self.places = more;
        }
        let address = class.pointer() as usize;
        let at = Self::place(&self.places, address);
        self.places[at] = (address, number);
        self.kept.push(class);
    }
}

impl Python {
    /// Registers a class of Structs. `defaults` has one item per slot of an instance. `fields` has the bit and the slot of each
    /// field; see [`finish`](Builder::finish). Returns `None` if memory runs out.
    pub fn class(
        &mut self,
        class: Object,
        defaults: Vec<Option<Object>>,
        fields: impl Iterator<Item = (usize, usize)>,
    ) -> Option<StructClass> {
        let words = HEADER + defaults.len();
        self.words.add(class.clone(), words);
        StructClass::new(class, defaults, fields)
    }

    /// Makes the template for deep copies of `value`. `depth` is the number of lists, dicts and Structs around it. Returns `None` if
    /// [`left`](Self::left) or memory runs out.
    ///
    /// A value nested deeper than the reader's maximum depth is shared. Only a program can have put it there, with
    /// `msgspec.structs.force_setattr`, and such values may form a cycle.
    fn deep_template_within(&mut self, value: &Object, depth: usize) -> Option<DeepTemplate> {
        let class = value.class();
        // SAFETY: see `api`. A new list or dict may start a collection of garbage, and other code that runs then may change our copies, too.
        // So each item gets a reference before the next call, and an item may be missing.
        unsafe {
            if is_plain(class) || depth > MAX_DEPTH {
                return Some(DeepTemplate::Shared(value.clone()));
            }
            if class == api().PyList_Type {
                self.left = self.left.checked_sub(1)?;
                let (list, mut inner) = (flat_copy(value)?, Vec::new());
                for index in 0..(api().PyList_Size)(list.pointer()) {
                    let item = (api().PyList_GetItem)(list.pointer(), index);
                    if item.is_null() {
                        (api().PyErr_Clear)();
                        return None;
                    }
                    let item = Object::borrowed(item);
                    let template = self.deep_template_within(&item, depth + 1)?;
                    if !matches!(template, DeepTemplate::Shared(_)) {
                        set_item(&list, index, super::none())?;
                        push(&mut inner, (index, template)).ok()?;
                    }
                }
                return Some(DeepTemplate::List(list, inner));
            }
            if class == api().PyDict_Type {
                self.left = self.left.checked_sub(1)?;
                let (dict, mut inner) = (flat_copy(value)?, Vec::new());
                let (mut at, mut key, mut item) = (0, null_mut(), null_mut());
                while (api().PyDict_Next)(dict.pointer(), &raw mut at, &raw mut key, &raw mut item)
                    != 0
                {
                    let (key, item) = (Object::borrowed(key), Object::borrowed(item));
                    let template = self.deep_template_within(&item, depth + 1)?;
                    if !matches!(template, DeepTemplate::Shared(_)) {
                        // CPython allows a new value for an existing key during the iteration.
                        set_key(&dict, &key, &super::none())?;
                        push(&mut inner, (key, template)).ok()?;
                    }
                }
                return Some(DeepTemplate::Dict(dict, inner));
            }
            let Some(words) = self.words.get(class as usize) else {
                return Some(DeepTemplate::Shared(value.clone()));
            };
            self.left = self.left.checked_sub(1)?;
            let (mut values, mut inner) = (Vec::new(), Vec::new());
            values.try_reserve_exact(words - HEADER).ok()?;
            for slot in HEADER..words {
                let item = self.slot(value, slot)?;
                let template = self.deep_template_within(&item, depth + 1)?;
                let is_shared = matches!(template, DeepTemplate::Shared(_));
                values.push(is_shared.then_some(item));
                if !is_shared {
                    push(&mut inner, (slot, template)).ok()?;
                }
            }
            if inner.is_empty() {
                return Some(DeepTemplate::Shared(value.clone()));
            }
            let class = StructClass::new(Object::borrowed(class), values, empty())?;
            Some(DeepTemplate::Struct(boxed([(class, inner)]).ok()?))
        }
    }
}

/// How to make deep copies of a value. The copies share only values that a program cannot change.
pub enum DeepTemplate {
    /// A value that all copies share.
    Shared(Object),
    /// A list, and the templates of the items that are copied, by index. The list has None in their places.
    List(Object, Vec<(Size, DeepTemplate)>),
    /// A dict, and the templates of the values that are copied, by key. The dict has None in their places.
    Dict(Object, Vec<(Object, DeepTemplate)>),
    /// A Struct's class, and the templates of the values that are copied, by slot. These slots are empty in the class's `image`, so that a
    /// copy that fails halfway can be freed. No other code sees the copy before, because the class is not tracked by the collector.
    Struct(Boxed<StructParts>),
}

type StructParts = (StructClass, Vec<(usize, DeepTemplate)>);

impl DeepTemplate {
    /// Makes a copy. Returns `None` if memory runs out.
    fn copy(&self) -> Option<Object> {
        // SAFETY: see `api`. The slots belong to the class, and are empty in a new instance.
        unsafe {
            match self {
                Self::Shared(value) => Some(value.clone()),
                Self::List(list, inner) => {
                    // While items are copied, a garbage collection may show the list to other code, so no item may be null.
                    let list = flat_copy(list)?;
                    for (index, item) in inner {
                        set_item(&list, *index, item.copy()?)?;
                    }
                    Some(list)
                }
                Self::Dict(dict, inner) => {
                    let dict = flat_copy(dict)?;
                    for (key, item) in inner {
                        set_key(&dict, key, &item.copy()?)?;
                    }
                    Some(dict)
                }
                Self::Struct(parts) => {
                    let [(class, inner)] = &**parts;
                    let copy = class.instance()?;
                    for (slot, item) in inner {
                        copy.slot(*slot).write(item.copy()?.release());
                    }
                    Some(copy)
                }
            }
        }
    }
}

/// Makes a shallow copy of a list or dict.
///
/// # Safety
///
/// The caller must hold the lock (see `api`).
#[inline]
unsafe fn flat_copy(value: &Object) -> Option<Object> {
    // SAFETY: the caller holds the lock. CPython raises an exception for an object that is neither a list nor a dict.
    unsafe {
        Object::owned(if value.class() == api().PyList_Type {
            let len = (api().PyList_Size)(value.pointer());
            (api().PyList_GetSlice)(value.pointer(), 0, len)
        } else {
            (api().PyDict_Copy)(value.pointer())
        })
    }
}

/// Replaces an item of a list. Returns `None` if the list has no item with this index.
///
/// # Safety
///
/// The caller must hold the lock (see `api`).
unsafe fn set_item(list: &Object, index: Size, item: Object) -> Option<()> {
    // SAFETY: the caller holds the lock. CPython takes over the reference to the item, even if it raises an exception.
    unsafe {
        check((api().PyList_SetItem)(
            list.pointer(),
            index,
            item.release(),
        ))
    }
}

/// Sets the value of a dict's key. Returns `None` if memory runs out.
///
/// # Safety
///
/// The caller must hold the lock (see `api`).
unsafe fn set_key(dict: &Object, key: &Object, value: &Object) -> Option<()> {
    // SAFETY: the caller holds the lock. The references keep the dict, the key and the value alive.
    unsafe {
        check((api().PyDict_SetItem)(
            dict.pointer(),
            key.pointer(),
            value.pointer(),
        ))
    }
}

/// Checks the result of a function of CPython: after an error, clears the exception and returns `None`.
///
/// # Safety
///
/// The caller must hold the lock (see `api`).
#[inline]
unsafe fn check(result: c_int) -> Option<()> {
    if result != 0 {
        // SAFETY: the caller holds the lock.
        unsafe { (api().PyErr_Clear)() };
        return None;
    }
    Some(())
}

/// Converts a length to CPython's `Py_ssize_t`.
#[allow(clippy::cast_possible_wrap)] // No length is above isize::MAX.
pub fn size(len: usize) -> Size {
    len as Size
}

impl Builder for Python {
    type Value = Object;
    type Class = StructClass;
    /// Until [`finish`](Builder::finish), a record does not own the defaults in its slots, so it must not be freed. After a panic of the
    /// reader it leaks.
    type Record = ManuallyDrop<Object>;
    type Template = Template;

    #[inline]
    fn text(&mut self, bytes: &[u8], is_ascii: bool) -> Option<Object> {
        // SAFETY: see `api`. A new ASCII string has room for its characters, and no other code has it yet. CPython shares strings of fewer
        // than two characters, so they must not be written to.
        unsafe {
            if is_ascii && bytes.len() > 1 {
                let string = Object::owned((api().PyUnicode_New)(size(bytes.len()), 127))?;
                let characters = string.pointer().cast::<u8>().add(api().characters);
                std::ptr::copy_nonoverlapping(bytes.as_ptr(), characters, bytes.len());
                return Some(string);
            }
            if let Some(characters) = api()
                .wide_characters
                .filter(|_| bytes.len() > LONGEST_CHARACTER)
            {
                return wide_text(bytes, characters);
            }
            Object::owned((api().PyUnicode_DecodeUTF8)(
                bytes.as_ptr().cast(),
                size(bytes.len()),
                std::ptr::null(),
            ))
        }
    }

    fn int(&mut self, value: i64) -> Option<Object> {
        super::int(value)
    }

    fn float(&mut self, value: f64) -> Option<Object> {
        // SAFETY: see `api`.
        unsafe { Object::owned((api().PyFloat_FromDouble)(value)) }
    }

    #[inline]
    fn null(&mut self) -> Object {
        super::none()
    }

    #[inline]
    fn bool(&mut self, value: bool) -> Object {
        super::bool(value)
    }

    fn list(&mut self, items: Drain<'_, Object>) -> Option<Object> {
        super::list(items)
    }

    fn dict(&mut self, pairs: Drain<'_, Object>) -> Option<Object> {
        // SAFETY: see `api`.
        let dict = unsafe { Object::owned((api()._PyDict_NewPresized)(size(pairs.len() / 2)))? };
        fill(&dict, pairs)?;
        Some(dict)
    }

    fn unknown(
        &mut self,
        kind: &Object,
        reason: &Object,
        pairs: Drain<'_, Object>,
    ) -> Option<Object> {
        let count = pairs.len() / 2;
        // SAFETY: see `api`. All arguments are alive. `kind` is a subclass of dict that Python put into the plan.
        unsafe {
            let dict = Object::owned((api().PyObject_CallNoArgs)(kind.pointer()))?;
            fill(&dict, pairs)?;
            if self.reason.is_none() {
                let name = (api().PyUnicode_InternFromString)(c"_reason".as_ptr());
                self.reason = Object::owned(name);
            }
            let name = self.reason.as_ref()?.pointer();
            if (api().PyObject_SetAttr)(dict.pointer(), name, reason.pointer()) != 0 {
                (api().PyErr_Clear)();
                return None;
            }
            ((api().PyDict_Size)(dict.pointer()) == size(count)).then_some(dict)
        }
    }

    #[inline]
    fn begin(&mut self, class: &StructClass) -> Option<ManuallyDrop<Object>> {
        // SAFETY: see `api`. No other code has the record before `finish`, which counts the references, and nothing drops it before.
        unsafe { class.uncounted().map(ManuallyDrop::new) }
    }

    #[inline]
    fn set(&mut self, record: &mut ManuallyDrop<Object>, slot: usize, value: Object) {
        // SAFETY: `slots_of` found the plan's slots in an instance. The reader sets a slot once, so the slot contains the default, which the
        // record does not own.
        unsafe { record.slot(slot).write(value.release()) }
    }

    #[inline]
    fn finish(
        &mut self,
        class: &StructClass,
        record: ManuallyDrop<Object>,
        set: [u64; 2],
    ) -> Object {
        // SAFETY: see `api`. `begin` made the record for this class, and only `set` has changed its slots. The reader promises that `set` has
        // the bits of exactly these slots (see `Builder::finish`).
        unsafe { class.count(set) };
        ManuallyDrop::into_inner(record)
    }

    fn slot(&mut self, record: &Object, slot: usize) -> Option<Object> {
        // SAFETY: instances of the class have this number of words. A slot contains the address of a live object, or null.
        unsafe {
            let class = record.class();
            if class == api().PyDict_Type {
                return entry(record, slot).map(|(_, value)| value);
            }
            if !(HEADER..self.words.get(class as usize)?).contains(&slot) {
                return None;
            }
            let value = *record.slot(slot);
            (!value.is_null()).then(|| Object::borrowed(value))
        }
    }

    fn template(&mut self, record: &Object, slots: Vec<usize>) -> Option<Template> {
        let class = record.class();
        // SAFETY: as in `slot`. A live record's class is alive.
        unsafe {
            if class == api().PyDict_Type {
                let mut keys = Vec::new();
                for slot in slots {
                    push(&mut keys, entry(record, slot)?.0).ok()?;
                }
                return Some(Template::Dict(record.clone(), keys));
            }
            let words = self.words.get(class as usize)?;
            if !slots.iter().all(|slot| (HEADER..words).contains(slot)) {
                return None;
            }
            let mut values = collect((HEADER..words).map(|_| None)).ok()?;
            for slot in (HEADER..words).filter(|slot| !slots.contains(slot)) {
                values[slot - HEADER] = Some(self.slot(record, slot)?);
            }
            let class = StructClass::new(Object::borrowed(class), values, empty())?;
            Some(Template::Struct(StructTemplate { class, slots }))
        }
    }

    #[inline]
    fn stamp(&mut self, template: &Template, values: &mut Vec<Object>) -> Option<Object> {
        // SAFETY: see `api`. Each open slot of the new instance gets a counted reference to a live object.
        unsafe {
            match template {
                Template::Struct(template) => {
                    let first = values.len().checked_sub(template.slots.len())?;
                    let copy = template.class.instance()?;
                    for (&slot, value) in template.slots.iter().zip(&values[first..]) {
                        copy.slot(slot).write(value.pointer());
                    }
                    // The copy took over the references.
                    values.set_len(first);
                    Some(copy)
                }
                Template::Dict(dict, keys) => {
                    let first = values.len().checked_sub(keys.len())?;
                    let copy = Object::owned((api().PyDict_Copy)(dict.pointer()))?;
                    for (key, value) in keys.iter().zip(values.drain(first..)) {
                        set_key(&copy, key, &value)?;
                    }
                    Some(copy)
                }
                Template::Deep(template) => template.copy(),
            }
        }
    }

    fn deep_template(&mut self, value: &Object, max_objects: usize) -> Option<Template> {
        self.left = max_objects;
        Some(Template::Deep(self.deep_template_within(value, 0)?))
    }
}

/// Returns the key at this position of a dict, and its value.
///
/// # Safety
///
/// The caller must hold the lock (see `api`), and no other code may change the dict during the call.
unsafe fn entry(dict: &Object, index: usize) -> Option<(Object, Object)> {
    let (mut at, mut key, mut value) = (0, null_mut(), null_mut());
    // SAFETY: the caller guarantees both conditions.
    unsafe {
        for _ in 0..=index {
            if (api().PyDict_Next)(dict.pointer(), &raw mut at, &raw mut key, &raw mut value) == 0 {
                return None;
            }
        }
        Some((Object::borrowed(key), Object::borrowed(value)))
    }
}

/// The maximum length in bytes of a character in UTF-8.
const LONGEST_CHARACTER: usize = 4;

/// Returns the string of some UTF-8, with at least two characters; `None` if it is not valid. If some characters are not ASCII, they begin at
/// byte `characters` of the object.
///
/// CPython's own decoder guesses the width of the characters, and copies the string if the guess was wrong.
///
/// # Safety
///
/// See `api`. `characters` must be the offset that [`load`](super::api::load) found.
unsafe fn wide_text(text: &[u8], characters: usize) -> Option<Object> {
    let text = Utf8::new(text)?;
    // SAFETY: a new string has room for its characters, and no other code has it yet. CPython aligns the characters, whose number of bytes
    // depends on the highest.
    #[allow(clippy::cast_ptr_alignment)]
    unsafe {
        let string = Object::owned((api().PyUnicode_New)(size(text.len()), text.most()))?;
        let start = string.pointer().cast::<u8>();
        let wide = start.add(characters);
        match text.most() {
            0..=0x7f => text.write(start.add(api().characters)),
            0x80..=0xff => text.write(wide),
            0x100..=0xffff => text.write(wide.cast::<u16>()),
            _ => text.write(wide.cast::<u32>()),
        }
        Some(string)
    }
}

/// Returns whether values of this class are immutable scalars, which messages share instead of copying them.
#[inline]
fn is_plain(class: Pointer) -> bool {
    class == api().PyUnicode_Type
        || class == api().PyBool_Type
        || class == api().PyLong_Type
        || class == api().PyFloat_Type
}

/// Returns the class of an object.
///
/// # Safety
///
/// The object must be alive.
#[inline]
pub unsafe fn class_of(object: Pointer) -> Pointer {
    // SAFETY: in each version that `load` accepts, the class is the second word of an object. `probe_characters` tests this.
    unsafe { *object.cast::<Pointer>().add(1) }
}

fn fill(dict: &Object, mut pairs: Drain<'_, Object>) -> Option<()> {
    while let (Some(key), Some(value)) = (pairs.next(), pairs.next()) {
        // SAFETY: see `api`.
        unsafe { set_key(dict, &key, &value)? };
    }
    Some(())
}
