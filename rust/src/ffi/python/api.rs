//! Finds CPython's functions in the running process, and tests the layout of its objects.
//!
//! The basic idea is simple: `dlsym` finds the function `PyUnicode_New` by its name. The library does not link CPython, so one library file
//! works with all versions of CPython, and without it. Some details of objects could differ between versions. [`load`] tests each of them on
//! an object of this interpreter:
//!
//! * how references are counted ([`Counting`]): calling a function for each reference takes longer;
//! * where the characters of a string and the bytes of a `bytes` begin;
//! * whether a capsule begins with its pointer and its name;
//! * the layout of small ints ([`Digit`]), and of lists and dicts ([`Containers`]).
//!
//! # Invariants
//!
//! Before a caller uses any function here or in [`object`](super::object), it must hold the interpreter's lock, and [`load`] must have
//! returned true.

#![allow(clippy::inline_always)] // The functions run for every value, and have only a few instructions.

use std::cell::UnsafeCell;
use std::ffi::{c_char, c_int, c_ulong, c_void, CStr};

/// A `PyObject *`.
pub type Pointer = *mut c_void;
/// A `Py_ssize_t`.
pub type Size = isize;

/// The C type of a function that CPython calls with the object that the function is bound to, and at most one argument.
pub type Function = unsafe extern "C" fn(Pointer, Pointer) -> Pointer;

/// A `PyMethodDef`.
#[repr(C)]
pub struct Method {
    /// The name.
    pub name: *const c_char,
    /// The function.
    pub function: Function,
    /// The calling convention.
    pub flags: c_int,
    /// The docstring, or null.
    pub doc: *const c_char,
}

impl Method {
    /// Describes a function without arguments (`METH_NOARGS`). CPython passes null as the second pointer.
    pub const fn takes_none(name: &'static CStr, function: Function) -> Self {
        Self::new(name, function, 4)
    }

    /// Describes a function with one positional argument (`METH_O`).
    pub const fn takes_one(name: &'static CStr, function: Function) -> Self {
        Self::new(name, function, 8)
    }

    const fn new(name: &'static CStr, function: Function, flags: c_int) -> Self {
        Self {
            name: name.as_ptr(),
            function,
            flags,
            doc: std::ptr::null(),
        }
    }
}

// SAFETY: no code writes to a method, and its pointers are null or addresses of static data.
unsafe impl Sync for Method {}

/// A `Py_buffer`, whose layout is part of the stable ABI.
#[repr(C)]
pub struct Buffer {
    /// The bytes.
    pub data: *const u8,
    /// The object that owns the bytes.
    pub owner: Pointer,
    /// The number of bytes.
    pub len: Size,
    item_size: Size,
    read_only: c_int,
    dimensions: c_int,
    format: *mut c_char,
    shape: *mut Size,
    strides: *mut Size,
    suboffsets: *mut Size,
    internal: *mut c_void,
}

macro_rules! api {
    (objects: $($object:ident),*; $( $function:ident: fn($($argument:ty),*) $(-> $result:ty)?; )*) => {
        /// CPython's functions, by name, and the addresses of some objects.
        #[allow(non_snake_case)]
        pub struct Api {
            $( pub $function: unsafe extern "C" fn($($argument),*) $(-> $result)?, )*
            $( pub $object: Pointer, )*
            /// How references are counted.
            pub counting: Counting,
            /// The offset in bytes of the characters in an ASCII string.
            pub characters: usize,
            /// The offset of the data in a `bytes` object, whose third word is its length. If `None`, CPython's functions return the
            /// pointer and the length.
            pub bytes: Option<usize>,
            /// Whether the third word of a capsule is its pointer, and the fourth its name.
            pub capsules_are_words: bool,
            /// How to read a one-digit int.
            pub digit: Digit,
            /// How to read lists and dicts.
            pub containers: Containers,
            /// The offset in bytes of the characters in a string that is not ASCII; `None` if strings do not have the layout of [`flags`].
            pub wide_characters: Option<usize>,
        }

        /// Looks up all functions and objects in this process; returns `None` if one is missing.
        unsafe fn find() -> Option<Api> {
            Some(Api {
                $( $function: {
                    let found = symbol(concat!(stringify!($function), "\0"))?;
                    // SAFETY: CPython documents this type for the function of this name.
                    unsafe { std::mem::transmute::<*mut c_void, unsafe extern "C" fn($($argument),*) $(-> $result)?>(found) }
                }, )*
                $( $object: symbol(concat!(stringify!($object), "\0"))?, )*
                counting: Counting::Functions,
                characters: 0,
                bytes: None,
                capsules_are_words: false,
                digit: Digit::Function,
                containers: Containers { list: false, dict: false },
                wide_characters: None,
            })
        }
    };
}

api! {
    objects: _Py_NoneStruct, _Py_TrueStruct, _Py_FalseStruct, PyBytes_Type, PyUnicode_Type, PyBool_Type, PyLong_Type, PyFloat_Type, PyList_Type, PyDict_Type, PyCapsule_Type, PyExc_SystemError;
    Py_GetVersion: fn() -> *const c_char;
    PyInterpreterState_Get: fn() -> Pointer;
    PyInterpreterState_GetID: fn(Pointer) -> i64;
    Py_IncRef: fn(Pointer);
    Py_DecRef: fn(Pointer);
    PyErr_Clear: fn();
    PyErr_Occurred: fn() -> Pointer;
    PyErr_NoMemory: fn() -> Pointer;
    PyErr_SetString: fn(Pointer, *const c_char);
    PyCFunction_NewEx: fn(*const Method, Pointer, Pointer) -> Pointer;
    PyCapsule_New: fn(*mut c_void, *const c_char, Option<unsafe extern "C" fn(Pointer)>) -> Pointer;
    PyCapsule_GetPointer: fn(Pointer, *const c_char) -> *mut c_void;
    PyDescr_NewMethod: fn(Pointer, *const Method) -> Pointer;
    _PyObject_New: fn(Pointer) -> Pointer;
    PyType_IsSubtype: fn(Pointer, Pointer) -> c_int;
    PyType_GetFlags: fn(Pointer) -> c_ulong;
    PyObject_CallNoArgs: fn(Pointer) -> Pointer;
    PyObject_VectorcallDict: fn(Pointer, *const Pointer, usize, Pointer) -> Pointer;
    PyObject_GetBuffer: fn(Pointer, *mut Buffer, c_int) -> c_int;
    PyBuffer_Release: fn(*mut Buffer);
    PyObject_SetAttr: fn(Pointer, Pointer, Pointer) -> c_int;
    PyLong_FromLongLong: fn(i64) -> Pointer;
    PyLong_AsLongLong: fn(Pointer) -> i64;
    PyLong_AsUnsignedLongLong: fn(Pointer) -> u64;
    PyLong_AsLongLongAndOverflow: fn(Pointer, *mut c_int) -> i64;
    PyFloat_FromDouble: fn(f64) -> Pointer;
    PyFloat_AsDouble: fn(Pointer) -> f64;
    PyUnicode_InternFromString: fn(*const c_char) -> Pointer;
    PyUnicode_New: fn(Size, u32) -> Pointer;
    PyUnicode_DecodeUTF8: fn(*const c_char, Size, *const c_char) -> Pointer;
    PyUnicode_AsUTF8AndSize: fn(Pointer, *mut Size) -> *const c_char;
    PyBytes_FromStringAndSize: fn(*const c_char, Size) -> Pointer;
    PyBytes_AsStringAndSize: fn(Pointer, *mut *mut c_char, *mut Size) -> c_int;
    _PyBytes_Resize: fn(*mut Pointer, Size) -> c_int;
    PyTuple_New: fn(Size) -> Pointer;
    PyTuple_Size: fn(Pointer) -> Size;
    PyTuple_GetItem: fn(Pointer, Size) -> Pointer;
    PyTuple_SetItem: fn(Pointer, Size, Pointer) -> c_int;
    PyList_New: fn(Size) -> Pointer;
    PyList_Size: fn(Pointer) -> Size;
    PyList_GetItem: fn(Pointer, Size) -> Pointer;
    PyList_GetSlice: fn(Pointer, Size, Size) -> Pointer;
    PyList_SetItem: fn(Pointer, Size, Pointer) -> c_int;
    _PyDict_NewPresized: fn(Size) -> Pointer;
    PyDict_Size: fn(Pointer) -> Size;
    PyDict_Copy: fn(Pointer) -> Pointer;
    PyDict_Next: fn(Pointer, *mut Size, *mut Pointer, *mut Pointer) -> c_int;
    PyDict_New: fn() -> Pointer;
    PyDict_DelItem: fn(Pointer, Pointer) -> c_int;
    PyDict_SetItem: fn(Pointer, Pointer, Pointer) -> c_int;
    PyDict_SetItemString: fn(Pointer, *const c_char, Pointer) -> c_int;
}

fn symbol(name: &'static str) -> Option<*mut c_void> {
    // SAFETY: the callers end `name` with a zero.
    let found = unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr().cast()) };
    (!found.is_null()).then_some(found)
}

/// How an object counts its references.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Counting {
    /// In a 64-bit word: CPython 3.10 and 3.11.
    Word,
    /// In the low 32 bits of a word, negative for an immortal object: CPython 3.12 and 3.13.
    HalfWord,
    /// Unknown, or the caller of [`load`] asks for this: call `Py_IncRef` and `Py_DecRef`.
    Functions,
}

/// A static value; `None` until it is set. The state of a native function is in a static, because only a function without a bound object can
/// be pickled by name.
pub struct Cell<T>(pub UnsafeCell<Option<T>>);

// SAFETY: the value is read and written only while this thread holds the interpreter's lock.
unsafe impl<T> Sync for Cell<T> {}

impl<T> Cell<T> {
    pub const fn new() -> Self {
        Self(UnsafeCell::new(None))
    }

    /// Replaces the value.
    ///
    /// # Safety
    ///
    /// This thread must hold the interpreter's lock, and no reference to the old value may be used after this call.
    pub unsafe fn replace(&self, value: T) {
        // SAFETY: the caller guarantees both conditions. Dropping the old value may run other code, so it is dropped last.
        let before = unsafe { (*self.0.get()).replace(value) };
        drop(before);
    }
}

static API: Cell<Api> = Cell::new();

/// Returns the functions and layouts that [`load`] found.
#[inline(always)]
pub fn api() -> &'static Api {
    // SAFETY: each caller runs after `load` returned true, so `load` has set the value; see the invariants of this module.
    unsafe { (*API.0.get()).as_ref().unwrap_unchecked() }
}

/// Keeps this library loaded until the process exits. While the interpreter shuts down, it may call or free the library's functions after
/// cffi has closed the library. Returns false on failure.
pub fn keep_loaded() -> bool {
    // SAFETY: the address is in this library, and its path ends with a zero; opening it again only increments its reference count.
    unsafe {
        let mut found = std::mem::MaybeUninit::<libc::Dl_info>::uninit();
        let address: unsafe fn(bool) -> bool = load;
        if libc::dladdr(address as *const c_void, found.as_mut_ptr()) == 0 {
            return false;
        }
        let path = found.assume_init().dli_fname;
        !path.is_null() && !libc::dlopen(path, libc::RTLD_NOW | libc::RTLD_NODELETE).is_null()
    }
}

/// The interpreter's lock. Dropping the value releases the lock.
pub struct Lock(c_int, unsafe extern "C" fn(c_int));

impl Drop for Lock {
    fn drop(&mut self) {
        // SAFETY: the matching function took the lock.
        unsafe { (self.1)(self.0) }
    }
}

/// Takes the interpreter's lock; returns `None` if the process has no interpreter.
///
/// # Safety
///
/// If this process has an interpreter, it must be initialized and not shut down.
pub unsafe fn lock() -> Option<Lock> {
    // SAFETY: CPython documents the types of the two functions. They do not need `load`.
    unsafe {
        let ensure: unsafe extern "C" fn() -> c_int =
            std::mem::transmute(symbol("PyGILState_Ensure\0")?);
        let release: unsafe extern "C" fn(c_int) =
            std::mem::transmute(symbol("PyGILState_Release\0")?);
        Some(Lock(ensure(), release))
    }
}

/// The minor versions of CPython 3 whose layouts this module knows. The last is `NEWEST_TESTED` in native/functions.py.
const KNOWN: std::ops::RangeInclusive<u32> = 10..=13;

/// Looks up the functions, and tests the layouts that may differ between versions. With `by_functions`, CPython's functions count references
/// whatever the layout. Does nothing if an earlier call succeeded, because other code then has references to the result. Returns false if the
/// process has no CPython, or an unknown version of it.
///
/// # Safety
///
/// The caller must hold the interpreter's lock if there is an interpreter.
pub unsafe fn load(by_functions: bool) -> bool {
    // SAFETY: the caller holds the interpreter's lock if there is an interpreter.
    unsafe {
        if (*API.0.get()).is_some() {
            return true;
        }
        let Some(mut api) = find() else {
            return false;
        };
        let version = CStr::from_ptr((api.Py_GetVersion)()).to_string_lossy();
        let minor = version
            .strip_prefix("3.")
            .and_then(|rest| rest.split('.').next()?.parse().ok());
        let Some(minor) = minor.filter(|minor| KNOWN.contains(minor)) else {
            return false;
        };
        let Some(characters) = probe_characters(&api) else {
            return false;
        };
        api.characters = characters;
        api.bytes = probe_bytes(&api);
        api.capsules_are_words = probe_capsules(&api);
        api.digit = probe_digit(&api);
        api.containers = probe_containers(&api, minor);
        api.wide_characters = probe_wide_characters(&api);
        if !by_functions {
            api.counting = probe_counting(&api, minor);
        }
        API.replace(api);
    }
    true
}

/// Returns the offset of the characters in an ASCII string, if a short and a long string have the same offset.
unsafe fn probe_characters(api: &Api) -> Option<usize> {
    // SAFETY: the caller holds the lock. In every known version, an object has the two words that are read.
    unsafe {
        let mut found = [0usize; 2];
        for (found, len) in found.iter_mut().zip([8, 100]) {
            let string = (api.PyUnicode_New)(len, 127);
            if string.is_null() {
                (api.PyErr_Clear)();
                return None;
            }
            let mut size = 0;
            let bytes = (api.PyUnicode_AsUTF8AndSize)(string, &raw mut size);
            *found = (bytes as usize).wrapping_sub(string as usize);
            // In a free-threaded build, the class is not the second word.
            let has_class = string.cast::<Pointer>().add(1).read() == api.PyUnicode_Type;
            (api.Py_DecRef)(string);
            if size != len || !has_class {
                return None;
            }
        }
        (found[0] == found[1] && (16..=128).contains(&found[0])).then_some(found[0])
    }
}

/// Returns the offset of the bytes in a `bytes` object, if a short and a long object have the same offset.
unsafe fn probe_bytes(api: &Api) -> Option<usize> {
    // SAFETY: the caller holds the lock. A `bytes` object has at least three words.
    let at = |text: &[u8]| unsafe {
        #[allow(clippy::cast_possible_wrap)] // The text is short.
        let size = text.len() as Size;
        let object = (api.PyBytes_FromStringAndSize)(text.as_ptr().cast(), size);
        if object.is_null() {
            (api.PyErr_Clear)();
            return None;
        }
        let (mut data, mut len) = (std::ptr::null_mut(), 0);
        (api.PyBytes_AsStringAndSize)(object, &raw mut data, &raw mut len);
        let has_size = object.cast::<Size>().add(2).read() == size && len == size;
        let at = (data as usize).wrapping_sub(object as usize);
        (api.Py_DecRef)(object);
        has_size.then_some(at)
    };
    let found = at(b"a few bytes")?;
    (at(&[b'x'; 1000]) == Some(found) && (16..=64).contains(&found)).then_some(found)
}

/// Returns whether the third word of a capsule is its pointer, and the fourth its name.
unsafe fn probe_capsules(api: &Api) -> bool {
    const NAME: &CStr = c"claude_wire.probe";
    let mut value = 0_u8;
    // SAFETY: the caller holds the lock. A capsule has at least a pointer and a name after the two words of every object.
    unsafe {
        let capsule = (api.PyCapsule_New)((&raw mut value).cast(), NAME.as_ptr(), None);
        if capsule.is_null() {
            (api.PyErr_Clear)();
            return false;
        }
        let words = capsule.cast::<*const c_void>();
        let is_so = words.add(2).read() == (&raw const value).cast()
            && words.add(3).read() == NAME.as_ptr().cast();
        (api.Py_DecRef)(capsule);
        is_so
    }
}

/// The layout of an int below 2 to the power of 30: a word for the sign and the size, then its only digit.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Digit {
    /// The word is the number of digits, negative for a negative int. Up to CPython 3.11.
    Size,
    /// The number of digits begins at the fourth bit of the word. The bits below are 0, or 1 for zero, or 2 for a negative
    /// int. CPython 3.12 and 3.13.
    Tag,
    /// Unknown layout: call a function.
    Function,
}

impl Digit {
    /// The number of words before the digit.
    const WORDS: usize = 3;

    /// Returns the value of an int of at most one digit; `None` for a longer int.
    ///
    /// # Safety
    ///
    /// `number` must be an int, and [`probe_digit`] must have found this layout.
    #[inline(always)]
    #[must_use]
    pub unsafe fn value(self, number: Pointer) -> Option<i64> {
        // SAFETY: an int has room for a digit. The digit of 0 may be uninitialized, but its value is not used.
        unsafe {
            let size = number.cast::<i64>().add(Self::WORDS - 1).read();
            let digit = || i64::from(number.cast::<u32>().add(2 * Self::WORDS).read());
            match self {
                Self::Size if size == 0 => Some(0),
                Self::Size if size == 1 || size == -1 => Some(size * digit()),
                Self::Tag if (0..16).contains(&size) => Some((1 - (size & 3)) * digit()),
                _ => None,
            }
        }
    }
}

/// Finds the layout of ints by testing a few ints.
unsafe fn probe_digit(api: &Api) -> Digit {
    const MOST: i64 = (1 << 30) - 1;
    const TRIED: [i64; 9] = [0, 1, -1, 7, 1000, MOST, -MOST, MOST + 1, i64::MIN];
    [Digit::Size, Digit::Tag]
        .into_iter()
        .find(|digit| {
            // SAFETY: the caller holds the lock. An int has at least the two words of every object, a size and a digit.
            TRIED.iter().all(|&tried| unsafe {
                let number = (api.PyLong_FromLongLong)(tried);
                if number.is_null() {
                    (api.PyErr_Clear)();
                    return false;
                }
                let value = digit.value(number);
                (api.Py_DecRef)(number);
                value == (tried.unsigned_abs() <= MOST.unsigned_abs()).then_some(tried)
            })
        })
        .unwrap_or(Digit::Function)
}

/// Which known layouts this interpreter's lists and dicts have. If the writer knows the layout, it reads items without a function call. The
/// call would take a third of the time to write an item.
pub struct Containers {
    /// Whether the third word of a list is its length, and the fourth the address of its items.
    pub list: bool,
    /// Whether a dict has the address of its [`Keys`], and then a null, unless it shares the keys with other dicts. The index and the
    /// [`Entries`] follow the [`Keys`]. CPython 3.11 to 3.13.
    dict: bool,
}

/// The header of a dict's keys: the size of the index, whether all keys are strings, and the number of pairs.
#[repr(C)]
struct Keys {
    references: Size,
    log2_size: u8,
    log2_index_bytes: u8,
    kind: u8,
    version: u32,
    usable: Size,
    entries: Size,
}

/// The entries of a dict. An entry is a key and its value; in a dict that may have keys other than strings, the key's hash precedes them.
/// The value of a removed key is null.
pub struct Entries {
    /// The key of the next entry.
    key: *const Pointer,
    /// The number of remaining entries.
    left: usize,
    /// The number of words in an entry.
    words: usize,
}

impl Entries {
    /// Returns the key and the value of the next entry whose key was not removed.
    ///
    /// # Safety
    ///
    /// The dict must be alive and unchanged.
    #[inline(always)]
    pub unsafe fn next(&mut self) -> Option<(Pointer, Pointer)> {
        while self.left != 0 {
            // SAFETY: an entry is left, and the caller guarantees that the dict still has it.
            let (key, value) = unsafe { (self.key.read(), self.key.add(1).read()) };
            self.key = self.key.wrapping_add(self.words);
            self.left -= 1;
            if !value.is_null() {
                return Some((key, value));
            }
        }
        None
    }
}

impl Containers {
    const LIST_LENGTH: usize = 2;
    const DICT_KEYS: usize = 4;
    /// The [`kind`](Keys::kind) of a dict that may have keys other than strings, and of a dict that has only strings.
    const ANY_KEYS: u8 = 0;
    const ONLY_STRINGS: u8 = 1;

    /// Returns the items of a list.
    ///
    /// # Safety
    ///
    /// Lists must have the known layout. `list` must be a list, and must not change while the items are used.
    #[inline(always)]
    pub unsafe fn items<'a>(list: Pointer) -> &'a [Pointer] {
        // SAFETY: the caller guarantees the layout, and that the list does not change. An empty list may have null as the address.
        unsafe {
            let list = list.cast::<usize>().add(Self::LIST_LENGTH);
            let (len, items) = (list.read(), list.add(1).read() as *const Pointer);
            if len == 0 {
                &[]
            } else {
                std::slice::from_raw_parts(items, len)
            }
        }
    }

    /// Returns the entries of a dict; `None` if the dict has another layout.
    ///
    /// # Safety
    ///
    /// `dict` must be a live dict.
    #[inline(always)]
    pub unsafe fn entries(&self, dict: Pointer) -> Option<Entries> {
        if !self.dict {
            return None;
        }
        // SAFETY: the caller guarantees a dict, and `probe_containers` tested the layout.
        unsafe {
            let dict = dict.cast::<*const Keys>();
            let keys = dict.add(Self::DICT_KEYS).read();
            let before_key = match (*keys).kind {
                Self::ANY_KEYS => 1,
                Self::ONLY_STRINGS => 0,
                _ => return None,
            };
            if !dict.add(Self::DICT_KEYS + 1).read().is_null() {
                return None;
            }
            let left = (*keys).entries.unsigned_abs();
            // An empty dict has an index of one byte, but no entry after it.
            let entries = keys.add(1).wrapping_byte_add(1 << (*keys).log2_index_bytes);
            Some(Entries {
                key: entries.cast::<Pointer>().wrapping_add(before_key),
                left,
                words: before_key + 2,
            })
        }
    }
}

/// Tests the layout of lists and dicts of several lengths, and of dicts with removed keys.
unsafe fn probe_containers(api: &Api, minor: u32) -> Containers {
    let read = Containers {
        list: true,
        dict: minor >= 11,
    };
    let lengths = [0, 1, 2, 6, 250];
    // SAFETY: the caller holds the lock. In every known version, lists and dicts have the words that are read.
    unsafe {
        Containers {
            list: lengths.iter().all(|&len| is_list_read(api, len)),
            dict: read.dict && lengths.iter().all(|&len| is_dict_read(api, &read, len)),
        }
    }
}

/// Returns whether [`Containers::items`] reads a list of `len` items correctly.
unsafe fn is_list_read(api: &Api, len: u8) -> bool {
    let len = Size::from(len);
    // SAFETY: the caller holds the lock. In every known version, a list has the words that `items` reads.
    unsafe {
        let list = (api.PyList_New)(len);
        if list.is_null() {
            (api.PyErr_Clear)();
            return false;
        }
        let mut is_read = true;
        for index in 0..len {
            let item = (api.PyFloat_FromDouble)(0.5);
            is_read &= !item.is_null() && (api.PyList_SetItem)(list, index, item) == 0;
        }
        let listed = (0..len).map(|index| (api.PyList_GetItem)(list, index));
        is_read = is_read && Containers::items(list).iter().copied().eq(listed);
        (api.Py_DecRef)(list);
        (api.PyErr_Clear)();
        is_read
    }
}

/// Returns whether [`Containers::entries`] correctly reads a dict with `len` keys, some of them removed, before and after the dict gets a
/// key that is not a string.
unsafe fn is_dict_read(api: &Api, read: &Containers, len: u8) -> bool {
    // SAFETY: the caller holds the lock. Each new reference is released once.
    unsafe {
        let dict = (api.PyDict_New)();
        if dict.is_null() {
            (api.PyErr_Clear)();
            return false;
        }
        let mut is_made = true;
        let mut set = |key: Pointer, is_removed: bool| {
            is_made &= !key.is_null() && (api.PyDict_SetItem)(dict, key, key) == 0;
            if is_made && is_removed {
                is_made = (api.PyDict_DelItem)(dict, key) == 0;
            }
            if !key.is_null() {
                (api.Py_DecRef)(key);
            }
            is_made
        };
        for index in 0..len {
            let text = [b'a' + index % 26, b'a' + index / 26];
            set(
                (api.PyUnicode_DecodeUTF8)(text.as_ptr().cast(), 2, std::ptr::null()),
                index % 3 == 1,
            );
        }
        let is_read = || {
            let (mut at, mut key, mut value) = (0, std::ptr::null_mut(), std::ptr::null_mut());
            read.entries(dict).is_some_and(|mut entries| {
                while (api.PyDict_Next)(dict, &raw mut at, &raw mut key, &raw mut value) != 0 {
                    if entries.next() != Some((key, value)) {
                        return false;
                    }
                }
                entries.next().is_none()
            })
        };
        let are_strings_read = is_read();
        let is_made = set((api.PyLong_FromLongLong)(1 << 40), false);
        let is_read = is_made && are_strings_read && is_read();
        (api.Py_DecRef)(dict);
        (api.PyErr_Clear)();
        is_read
    }
}

/// The layout of a string: its length, its hash, and these bits. In an ASCII string, the characters follow. In any other string, the length
/// and the address of its UTF-8 follow, if CPython has already made the UTF-8.
pub mod flags {
    /// The index of the word with the length.
    pub const LENGTH: usize = 2;
    /// The index of the word with the bits.
    pub const WORD: usize = 4;
    /// The bit of a string whose characters are in the object itself.
    pub const COMPACT: u32 = 1 << 5;
    /// The bit of an ASCII string.
    pub const ASCII: u32 = 1 << 6;
    /// Both bits.
    pub const ASCII_TOO: u32 = COMPACT | ASCII;
    /// Returns the number of bytes of a character: 1, 2 or 4.
    #[must_use]
    pub fn width(bits: u32) -> u32 {
        bits >> 2 & 7
    }
}

/// Returns the offset of the characters in strings that are not ASCII, if strings of every width have the layout of [`flags`].
unsafe fn probe_wide_characters(api: &Api) -> Option<usize> {
    const TEXTS: [(&CStr, u32, [u32; 2]); 4] = [
        (c"ab", flags::COMPACT | flags::ASCII | 1 << 2, [0x61, 0x62]),
        (c"\u{e9}\u{fc}", flags::COMPACT | 1 << 2, [0xe9, 0xfc]),
        (c"\u{20ac}a", flags::COMPACT | 2 << 2, [0x20ac, 0x61]),
        (c"\u{1f980}a", flags::COMPACT | 4 << 2, [0x1f980, 0x61]),
    ];
    let mut candidates = [16, 24].into_iter().map(|more| api.characters + more);
    candidates.find(|&wide| {
        // SAFETY: the caller holds the lock. The function reads the string up to its last character, and CPython makes its UTF-8.
        TEXTS.iter().all(|&(text, bits, [first, second])| unsafe {
            let bytes = text.to_bytes();
            #[allow(clippy::cast_possible_wrap)] // The text is short.
            let len = bytes.len() as Size;
            let string = (api.PyUnicode_DecodeUTF8)(bytes.as_ptr().cast(), len, std::ptr::null());
            if string.is_null() {
                (api.PyErr_Clear)();
                return false;
            }
            let word = |index: usize| string.cast::<usize>().add(index).read();
            let all = flags::COMPACT | flags::ASCII | 7 << 2;
            let is_ascii = bits & flags::ASCII != 0;
            let mut is_so = word(flags::LENGTH) == 2
                && string.cast::<u32>().add(2 * flags::WORD).read() & all == bits;
            if is_so {
                let from = string.byte_add(if is_ascii { api.characters } else { wide });
                let at = |index: usize| match flags::width(bits) {
                    1 => u32::from(from.cast::<u8>().add(index).read()),
                    2 => u32::from(from.cast::<u16>().add(index).read()),
                    _ => from.cast::<u32>().add(index).read(),
                };
                is_so = at(0) == first && at(1) == second;
            }
            if is_so && !is_ascii {
                let utf8 = api.characters / 8;
                is_so = word(utf8 + 1) == 0;
                let mut size = 0;
                let made = (api.PyUnicode_AsUTF8AndSize)(string, &raw mut size);
                is_so = is_so && !made.is_null() && word(utf8 + 1) == made as usize;
                is_so = is_so && size == len && word(utf8) == bytes.len();
            }
            (api.Py_DecRef)(string);
            is_so
        })
    })
}

/// Returns how this version counts references, if a test on a new string and on `None` confirms it.
unsafe fn probe_counting(api: &Api, minor: u32) -> Counting {
    // SAFETY: the caller holds the lock. In every known version, an object begins with its reference count.
    unsafe {
        let string = (api.PyUnicode_New)(100, 127);
        if string.is_null() {
            (api.PyErr_Clear)();
            return Counting::Functions;
        }
        let count = string.cast::<i64>();
        let before = count.read();
        (api.Py_IncRef)(string);
        let after = count.read();
        (api.Py_DecRef)(string);
        let is_counted = before == 1 && after == 2 && count.read() == 1;
        (api.Py_DecRef)(string);
        let is_immortal = api._Py_NoneStruct.cast::<i32>().read() < 0;
        match (is_counted, minor <= 11, is_immortal) {
            (true, true, false) => Counting::Word,
            (true, false, true) => Counting::HalfWord,
            _ => Counting::Functions,
        }
    }
}
