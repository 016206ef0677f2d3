/// running_product: the products of the first 1, 2, ... n elements of an array, in memory of memrt.

#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>

#include <memrt/capsule.h>
#include <memrt/memrt.hpp>

#include <numeric>
#include <utility>

namespace py = pybind11;

using Values = py::array_t<double, py::array::c_style | py::array::forcecast>;

namespace
{

/// Return a NumPy array over the elements, without a copy. The base of the array is a capsule.
py::array_t<double> as_numpy(memrt::array<double> elements)
{
    auto count = static_cast<py::ssize_t>(elements.size());
    const double *data = elements.data();
    PyObject *capsule = memrt_meminfo_as_capsule(memrt::table(), elements.release());
    if (capsule == nullptr) {
        throw py::error_already_set();
    }
    return py::array_t<double>(count, data, py::reinterpret_steal<py::object>(capsule));
}

py::array_t<double> running_product(const Values &values)
{
    if (values.ndim() != 1) {
        throw py::value_error("values must have one dimension");
    }
    auto count = static_cast<std::size_t>(values.size());
    memrt::array<double> products = memrt::empty<double>(count);
    std::partial_sum(values.data(), values.data() + count, products.begin(),
                     std::multiplies<double>());
    return as_numpy(std::move(products));
}

} // namespace

PYBIND11_MODULE(running_product, module)
{
    const memrt_api_t *api = memrt_import();
    if (api == nullptr) {
        throw py::error_already_set();
    }
    memrt::set_table(api);
    module.def("running_product", &running_product, py::arg("values"),
               "Return the products of the first 1, 2, ... n elements.");
}
