/* A kernel's descriptor from the type of its function: kinds and sizes of the parameters, and a
   thunk that calls it in the CUDA driver's form (an array of pointers to the arguments). */
#ifndef CPU_DESCRIBE_H
#define CPU_DESCRIBE_H

#pragma GCC system_header

#include <stddef.h>
#include <stdint.h>

#include <type_traits>
#include <utility>

#include "cpu_abi.h"

namespace cpu
{
template <class T> constexpr char kind_of()
{
    if (std::is_pointer<T>::value)
        return 'p';
    if (std::is_floating_point<T>::value)
        return sizeof(T) == 4 ? 'f' : 'd';
    if (std::is_integral<T>::value || std::is_enum<T>::value) {
        bool is_signed = std::is_signed<T>::value;
        return sizeof(T) == 8   ? (is_signed ? 'I' : 'U')
               : sizeof(T) == 4 ? (is_signed ? 'i' : 'u')
                                : '?';
    }
    return '?';
}

template <class Function, auto Kernel> struct thunk;
template <auto Kernel, class... A> struct thunk<void (*)(A...), Kernel> {
    static constexpr unsigned count = sizeof...(A);
    static constexpr char kinds[count + 1] = {kind_of<A>()..., 0};
    static constexpr uint16_t sizes[count + 1] = {(uint16_t)sizeof(A)..., 0};

    template <size_t... I> static void call(void *const *p, std::index_sequence<I...>)
    {
        (void)p;
        Kernel(*static_cast<std::remove_reference_t<A> *>(p[I])...);
    }
    static void invoke(void *const *p)
    {
        call(p, std::index_sequence_for<A...>{});
    }
};

template <class Function, auto Kernel>
constexpr struct cpu_kernel_desc describe(const char *name, uint32_t max_threads)
{
    using t = thunk<Function, Kernel>;
    return {name, t::kinds, t::sizes, t::count, max_threads, &t::invoke};
}

/* __launch_bounds__(threads, blocks per multiprocessor, ...): the first counts here. */
template <class... Rest> constexpr uint32_t first_of(uint32_t threads, Rest...)
{
    return threads;
}
} // namespace cpu

#endif
