/// running_norm: the norms of the first 1, 2, ... n elements of an array, in memory of memrt.

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <numpy/arrayobject.h>

#include <memrt/memrt.hpp>
#include <memrt/numpy.h>

#include <cmath>
#include <utility>

namespace nb = nanobind;
using namespace nb::literals;

using Values = nb::ndarray<const double, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

namespace
{

/// Return a NumPy array over the elements, without a copy.
///
/// An nb::ndarray would also keep the elements alive, but hides their owner from memrt.meminfo().
nb::object as_numpy(memrt::array<double> elements)
{
    auto count = static_cast<npy_intp>(elements.size());
    PyObject *array = memrt_meminfo_as_array(memrt::table(), elements.release(),
                                             PyArray_DescrFromType(NPY_DOUBLE), 1, &count, nullptr,
                                             0, NPY_ARRAY_CARRAY);
    if (array == nullptr) {
        throw nb::python_error();
    }
    return nb::steal(array);
}

nb::object running_norm(const Values &values)
{
    memrt::array<double> norms = memrt::empty<double>(values.size());
    double sum = 0;
    for (std::size_t i = 0; i < norms.size(); i++) {
        sum += values.data()[i] * values.data()[i];
        norms[i] = std::sqrt(sum);
    }
    return as_numpy(std::move(norms));
}

} // namespace

NB_MODULE(running_norm, module)
{
    const memrt_api_t *api = memrt_import();
    if (api == nullptr || PyArray_ImportNumPyAPI() < 0) {
        throw nb::python_error();
    }
    memrt::set_table(api);
    module.def("running_norm", &running_norm, "values"_a,
               "Return the norms of the first 1, 2, ... n elements.");
}
