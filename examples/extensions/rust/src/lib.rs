//! Reference-counted arrays in memory of memrt, which C, NumPy and Numba can share.
//!
//! ```
//! let mut squares = memrt::Array::<f64>::zeros(4)?;
//! for (index, square) in squares.get_mut().unwrap().iter_mut().enumerate() {
//!     *square = (index * index) as f64;
//! }
//! let shared = squares.clone(); // one more reference, no copy
//! assert_eq!(shared[..], [0.0, 1.0, 4.0, 9.0]);
//! # Ok::<(), memrt::Error>(())
//! ```

pub mod ffi;

use std::ffi::{c_void, CStr};
use std::fmt;
use std::marker::PhantomData;
use std::mem::{align_of, size_of, ManuallyDrop};
use std::ops::Deref;
use std::ptr::{null, null_mut, NonNull};
use std::sync::atomic::{fence, Ordering};
use std::sync::OnceLock;

/// Reason of a refused call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Error {
    /// No memory for the given number of bytes.
    OutOfMemory(usize),
    /// The installed libmemrt has another ABI; the text has the remedy.
    OtherAbi(String),
    /// Any other status of memrt.
    Status(ffi::Status),
}

impl fmt::Display for Error {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::OutOfMemory(size) => write!(out, "no memory for {size} bytes"),
            Error::OtherAbi(why) => out.write_str(why),
            Error::Status(status) => write!(out, "memrt refused the call with status {status}"),
        }
    }
}

impl std::error::Error for Error {}

/// Return the function table of the linked libmemrt.
pub fn api() -> Result<&'static ffi::Api, Error> {
    static TABLE: OnceLock<Result<&'static ffi::Api, Error>> = OnceLock::new();
    let find = || {
        let mut why = null();
        // The table is valid until the process ends.
        match unsafe { ffi::memrt_get_api(ffi::ABI_MAJOR, &mut why).as_ref() } {
            Some(table) => Ok(table),
            None => {
                let text = unsafe { CStr::from_ptr(why) };
                Err(Error::OtherAbi(text.to_string_lossy().into_owned()))
            }
        }
    };
    TABLE.get_or_init(find).clone()
}

/// Element of an array.
///
/// # Safety
/// All bytes zero must be a value, and a copy of the bytes must be a copy of the value.
pub unsafe trait Element: Copy + Send + Sync + 'static {}

macro_rules! elements {
    ($($element:ty)*) => { $(unsafe impl Element for $element {})* };
}
elements!(u8 u16 u32 u64 usize i8 i16 i32 i64 isize f32 f64);

/// Shared elements of type T in the memory of a MemInfo. A clone is one more reference.
pub struct Array<T: Element> {
    mi: NonNull<ffi::MemInfo>,
    api: &'static ffi::Api,
    elements: PhantomData<T>,
}

// The count is atomic, and shared elements are read only: get_mut() needs the only reference.
unsafe impl<T: Element> Send for Array<T> {}
unsafe impl<T: Element> Sync for Array<T> {}

impl<T: Element> Array<T> {
    /// Allocate `count` elements whose bytes are zero.
    pub fn zeros(count: usize) -> Result<Self, Error> {
        let size = count
            .checked_mul(size_of::<T>())
            .ok_or(Error::OutOfMemory(usize::MAX))?;
        let mut options = default_options();
        options.zeroed = 1;
        Self::create(size, |api, out| unsafe {
            (api.meminfo_new)(size, &options, out)
        })
    }

    /// Take over the elements of a vector, without a copy. The last release drops the vector.
    pub fn from_vec(mut values: Vec<T>) -> Result<Self, Error> {
        unsafe extern "C" fn drop_vec<T>(_: *mut c_void, _: usize, info: *mut c_void) {
            drop(unsafe { Box::from_raw(info.cast::<Vec<T>>()) });
        }
        let (data, size) = (values.as_mut_ptr(), values.len() * size_of::<T>());
        let holder = Box::into_raw(Box::new(values));
        let mut options = default_options();
        options.dtor = Some(drop_vec::<T>);
        options.dtor_info = holder.cast();
        let data = data.cast();
        let adopted = Self::create(size, |api, out| unsafe {
            (api.meminfo_adopt)(data, size, &options, out)
        });
        if adopted.is_err() {
            drop(unsafe { Box::from_raw(holder) });
        }
        adopted
    }

    /// Take over the caller's reference to a MemInfo.
    ///
    /// # Safety
    /// The caller must hold a reference to `mi`, and the data must be elements of T that no other
    /// code changes while the array is in use.
    pub unsafe fn from_raw(mi: NonNull<ffi::MemInfo>) -> Result<Self, Error> {
        let api = api()?;
        Ok(Self {
            mi,
            api,
            elements: PhantomData,
        })
    }

    /// Hand the reference to the caller, for C code that steals a reference.
    pub fn into_raw(self) -> NonNull<ffi::MemInfo> {
        ManuallyDrop::new(self).mi
    }

    /// Return the elements for changes, unless other references to the memory exist.
    pub fn get_mut(&mut self) -> Option<&mut [T]> {
        if self.references() != 1 {
            return None;
        }
        fence(Ordering::Acquire); // after the reads of threads that released their references
        Some(unsafe { std::slice::from_raw_parts_mut(self.data(), self.len()) })
    }

    /// Return the number of references at this moment.
    pub fn references(&self) -> usize {
        unsafe { (self.api.refcount)(self.mi.as_ptr()) }
    }

    fn create(
        size: usize,
        call: impl FnOnce(&ffi::Api, *mut *mut ffi::MemInfo) -> ffi::Status,
    ) -> Result<Self, Error> {
        let api = api()?;
        let mut mi = null_mut();
        match (call(api, &mut mi), NonNull::new(mi)) {
            (ffi::OK, Some(mi)) => Ok(Self {
                mi,
                api,
                elements: PhantomData,
            }),
            (ffi::ENOMEM, _) => Err(Error::OutOfMemory(size)),
            (status, _) => Err(Error::Status(status)),
        }
    }

    fn data(&self) -> *mut T {
        let data = unsafe { (self.api.get_data)(self.mi.as_ptr()) }.cast::<T>();
        // An empty vector has an address that is not NULL; memrt keeps the address.
        debug_assert!(!data.is_null() && data as usize % align_of::<T>() == 0);
        data
    }
}

impl<T: Element> Deref for Array<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        let count = unsafe { (self.api.size)(self.mi.as_ptr()) } / size_of::<T>();
        unsafe { std::slice::from_raw_parts(self.data(), count) }
    }
}

impl<T: Element> Clone for Array<T> {
    fn clone(&self) -> Self {
        unsafe { (self.api.acquire)(self.mi.as_ptr()) };
        Self { ..*self }
    }
}

impl<T: Element> Drop for Array<T> {
    fn drop(&mut self) {
        unsafe { (self.api.release)(self.mi.as_ptr()) };
    }
}

fn default_options() -> ffi::NewOptions {
    ffi::NewOptions {
        struct_size: size_of::<ffi::NewOptions>(),
        policy: null_mut(),
        alignment: 0,
        zeroed: 0,
        readonly: 0,
        dtor: None,
        dtor_info: null_mut(),
        external: null_mut(),
        name: null(),
    }
}
