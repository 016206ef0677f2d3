#include "interop/foreign_tensor.h"

#include "core/owner.h"
#include "support/errors.h"

static void delete_versioned_tensor(void *loan)
{
    DLManagedTensorVersioned *tensor = loan;
    if (tensor->deleter != NULL) {
        tensor->deleter(tensor);
    }
}

static void delete_unversioned_tensor(void *loan)
{
    DLManagedTensor *tensor = loan;
    if (tensor->deleter != NULL) {
        tensor->deleter(tensor);
    }
}

static void (*get_deleter(memrt_foreign_tensor_t foreign))(void *loan)
{
    return foreign.versioned ? delete_versioned_tensor : delete_unversioned_tensor;
}

void memrt__foreign_tensor_delete(memrt_foreign_tensor_t foreign)
{
    memrt_pending_t pending;
    memrt__pending_save(&pending);
    get_deleter(foreign)(foreign.tensor);
    memrt__pending_restore(&pending);
}

/// Return the device of a tensor. For another major version of DLPack return the CPU, since only
/// the version may be read then.
static DLDevice get_tensor_device(memrt_foreign_tensor_t foreign)
{
    const DLManagedTensorVersioned *tensor = foreign.tensor;
    if (!foreign.versioned) {
        return ((const DLManagedTensor *)foreign.tensor)->dl_tensor.device;
    }
    return tensor->version.major == DLPACK_MAJOR_VERSION ? tensor->dl_tensor.device
                                                         : (DLDevice){kDLCPU, 0};
}

int memrt__foreign_tensor_is_on_device(memrt_foreign_tensor_t foreign)
{
    return get_tensor_device(foreign).device_type == kDLCUDA;
}

static memrt_status_t adopt_tensor(memrt_foreign_tensor_t foreign,
                                   const memrt_new_options_t *options, memrt_dlpack_view_t *view,
                                   memrt_meminfo_t **out, const char **why)
{
    return foreign.versioned
               ? memrt__api()->dlpack_adopt(foreign.tensor, options, view, out, why)
               : memrt__api()->dlpack_adopt_unversioned(foreign.tensor, options, view, out, why);
}

/// Adopt device memory, with the GIL released because the driver may block.
static memrt_status_t adopt_device_tensor(memrt_foreign_tensor_t foreign,
                                          const memrt_new_options_t *options,
                                          memrt_dlpack_view_t *view, memrt_meminfo_t **out,
                                          const char **why)
{
    memrt_status_t status;
    Py_BEGIN_ALLOW_THREADS;
    status = adopt_tensor(foreign, options, view, out, why);
    Py_END_ALLOW_THREADS;
    return status;
}

/// Adopt a tensor into a shell. `keep` lives as long as the memory. On failure returns NULL with an
/// exception, and the caller keeps the tensor.
static memrt_meminfo_object_t *adopt_into_shell(memrt_meminfo_object_t *shell,
                                                memrt_foreign_tensor_t foreign, PyObject *keep,
                                                memrt_policy_t *policy, memrt_dlpack_view_t *view)
{
    memrt_meminfo_t *mi;
    const char *why = NULL;
    memrt_owner_t *owner = memrt__owner_of_loan(get_deleter(foreign), foreign.tensor, keep);
    if (owner == NULL) {
        return NULL;
    }
    memrt_new_options_t options = memrt__owner_options(owner, policy);
    *view = (memrt_dlpack_view_t){.struct_size = sizeof(*view)};
    int is_device = memrt__foreign_tensor_is_on_device(foreign);
    memrt_status_t status = is_device ? adopt_device_tensor(foreign, &options, view, &mi, &why)
                                      : adopt_tensor(foreign, &options, view, &mi, &why);
    if (status != MEMRT_OK) {
        memrt__owner_discard(owner);
        memrt__raise_refusal(status, "cannot take the memory of a DLPack tensor", why);
        return NULL;
    }
    return (memrt_meminfo_object_t *)(is_device ? memrt__meminfo_fill_waiting(shell, mi)
                                                : memrt__meminfo_fill(shell, mi));
}

memrt_meminfo_object_t *memrt__foreign_tensor_adopt(memrt_foreign_tensor_t foreign, PyObject *keep,
                                                    memrt_policy_t *policy,
                                                    memrt_dlpack_view_t *view)
{
    memrt__owner_drain();
    memrt_meminfo_object_t *shell = memrt__meminfo_shell();
    memrt_meminfo_object_t *base =
        shell != NULL ? adopt_into_shell(shell, foreign, keep, policy, view) : NULL;
    if (base == NULL) {
        Py_XDECREF(shell);
        memrt__foreign_tensor_delete(foreign);
    }
    return base;
}

const DLTensor *memrt__foreign_tensor_behind(const memrt_meminfo_t *mi)
{
    DLManagedTensorVersioned *versioned = memrt__owner_loan(mi, delete_versioned_tensor);
    DLManagedTensor *unversioned = memrt__owner_loan(mi, delete_unversioned_tensor);
    return versioned != NULL     ? &versioned->dl_tensor
           : unversioned != NULL ? &unversioned->dl_tensor
                                 : NULL;
}
