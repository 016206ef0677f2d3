/// Tests of a user with Check: a test case that passes, and a test case whose tests must fail.

#include <stdlib.h>

#include <memrt/check.h>
#include <memrt/memrt.h>

static memrt_meminfo_t *kept;

static memrt_meminfo_t *make(size_t size, const char *name)
{
    memrt_new_options_t options = {sizeof(options), .name = name};
    memrt_meminfo_t *mi;
    ck_assert_int_eq(memrt_ck_api()->meminfo_new(size, &options, &mi), MEMRT_OK);
    return mi;
}

static void drop(memrt_meminfo_t *mi)
{
    memrt_ck_api()->release(mi);
}

static void set_up(void)
{
    kept = make(100, "of the fixture");
}

static void tear_down(void)
{
    drop(kept);
}

START_TEST(what_is_given_back_is_no_leak)
{
    memrt_ck_assert_live(100);
    memrt_meminfo_t *mi = make(1000, NULL);
    memrt_ck_assert_live(1100);
    drop(mi);
    memrt_ck_assert_live(100);
    memrt_ck_assert_peak(1100);
}
END_TEST

START_TEST(each_test_starts_anew)
{
    memrt_ck_assert_peak(100);
    ck_assert_uint_eq(memrt_ck_live_bytes(), 100);
    ck_assert_uint_eq(memrt_ck_peak_bytes(), 100);
}
END_TEST

START_TEST(a_leak)
{
    make(1000, "lookup table");
    memrt_ck_api()->acquire(make(96, NULL));
}
END_TEST

START_TEST(many_leaks)
{
    for (int i = 0; i < 15; i++) {
        make(8, NULL);
    }
}
END_TEST

START_TEST(more_live_than_said)
{
    kept = make(10, NULL);
    memrt_ck_assert_live(9);
}
END_TEST

START_TEST(a_peak_above_its_limit)
{
    drop(make(2000, NULL));
    memrt_ck_assert_peak(1999);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("memrt");
    TCase *right = tcase_create("right"), *wrong = tcase_create("wrong");
    memrt_ck_add_no_leaks(right);
    tcase_add_checked_fixture(right, set_up, tear_down);
    tcase_add_test(right, what_is_given_back_is_no_leak);
    tcase_add_test(right, each_test_starts_anew);
    memrt_ck_add_no_leaks(wrong);
    tcase_add_test(wrong, a_leak);
    tcase_add_test(wrong, many_leaks);
    tcase_add_test(wrong, more_live_than_said);
    tcase_add_test(wrong, a_peak_above_its_limit);
    suite_add_tcase(suite, right);
    suite_add_tcase(suite, wrong);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
