// SPDX-License-Identifier: BSD-2-Clause
// Runs a broad sample of libstdc++ with exceptions and longjmp inside windows for
// `dynamic` to step.
#include <algorithm>
#include <any>
#include <chrono>
#include <cmath>
#include <csetjmp>
#include <deque>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iomanip>
#include <iostream>
#include <list>
#include <locale>
#include <map>
#include <memory>
#include <numeric>
#include <optional>
#include <random>
#include <regex>
#include <set>
#include <sstream>
#include <stdexcept>
#include <string>
#include <unordered_map>
#include <variant>
#include <vector>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <cwchar>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace
{

struct Guard {
	int *p;
	~Guard()
	{
		++*p;
	}
};

int deep(int n, int *count)
{
	Guard g{count};
	if (n == 0)
		throw std::runtime_error("bottom");
	return deep(n - 1, count) + 1;
}

int rethrow(int n, int *count)
{
	try {
		return deep(n, count);
	} catch (const std::logic_error &) {
		return -1;
	} catch (...) {
		++*count;
		throw;
	}
}

void exceptions()
{
	int count = 0;
	for (int i = 0; i < 4; i++) {
		try {
			rethrow(i, &count);
		} catch (const std::exception &e) {
			count += static_cast<int>(std::strlen(e.what()));
		}
	}
	try {
		std::vector<int>().at(3);
	} catch (const std::out_of_range &) {
	}
	try {
		std::stoi("x");
	} catch (const std::invalid_argument &) {
	}
	try {
		std::string("abc").substr(10);
	} catch (const std::out_of_range &) {
	}
	try {
		(void)std::get<int>(std::variant<int, std::string>("x"));
	} catch (const std::bad_variant_access &) {
	}
	auto p = std::make_exception_ptr(5);
	try {
		std::rethrow_exception(p);
	} catch (int) {
	}
}

jmp_buf where;
void jump(int n)
{
	if (n == 0)
		longjmp(where, 1);
	jump(n - 1);
	asm volatile("" ::: "memory");
}

void jumps()
{
	if (setjmp(where) == 0)
		jump(5);
}

void streams()
{
	std::ostringstream o;
	o << 1 << ' ' << 2.5 << ' ' << std::hex << 255 << std::setw(10) << std::setfill('*') << "x"
	  << std::boolalpha << true << std::setprecision(12) << 3.14159265L << std::scientific
	  << 1e300 << static_cast<void *>(&o) << -5LL << 7UL << 'c' << std::endl;
	std::istringstream i("12 3.5 word 0x1f line rest\nnext 1e5");
	int a;
	double d;
	std::string w;
	i >> a >> d >> w >> std::hex >> a;
	std::getline(i, w);
	i >> w >> d >> std::ws;
	i.clear();
	i.seekg(0);
	std::wostringstream wo;
	wo << L"wide" << 5 << 2.5;
	std::ofstream f("/tmp/xsp-exercise.txt");
	f << "hello\n" << 1;
	f.close();
	std::ifstream g("/tmp/xsp-exercise.txt");
	g >> w;
	g.close();
	std::remove("/tmp/xsp-exercise.txt");
	std::stringstream both;
	both << std::put_time(std::gmtime(&(const time_t &)(time_t){0}), "%Y-%m-%d %H:%M:%S %A");
	std::cerr.flush();
}

void containers()
{
	std::map<std::string, int> m;
	std::unordered_map<std::string, std::vector<int>> u;
	std::set<double> s;
	std::list<std::string> l;
	std::deque<int> q;
	for (int i = 0; i < 40; i++) {
		std::string k = "key number " + std::to_string(i * 7919 % 41);
		m[k] = i;
		u[k].push_back(i);
		s.insert(i * 0.5);
		l.push_front(k);
		q.push_back(i);
	}
	l.sort();
	l.unique();
	m.erase("key number 3");
	for (auto it = m.begin(); it != m.end(); ++it)
		q.push_front(it->second);
	std::vector<int> v(q.begin(), q.end());
	std::sort(v.begin(), v.end());
	std::stable_sort(v.begin(), v.end(), std::greater<int>());
	std::nth_element(v.begin(), v.begin() + 5, v.end());
	std::accumulate(v.begin(), v.end(), 0);
	auto sp = std::make_shared<std::string>("shared");
	std::weak_ptr<std::string> wp = sp;
	std::any an = std::string("any");
	std::any_cast<std::string>(an).append(20, 'x');
	std::function<int(int)> f = [sp](int x) { return x + static_cast<int>(sp->size()); };
	f(3);
	std::optional<std::string> op("x");
	op->insert(0, "abc");
	op->replace(1, 1, "zz").find_last_of("c");
	op->reserve(200);
	op->shrink_to_fit();
}

void text()
{
	std::regex r("([a-z]+)@([a-z.]+)|[[:digit:]]{2,}",
		     std::regex::extended | std::regex::icase);
	std::smatch m;
	std::string s = "mail Me@example.com 12345";
	std::regex_search(s, m, std::regex("([a-z]+)@([a-z.]+)"));
	std::regex_replace(s, std::regex("[aeiou]"), "<$&>");
	std::locale c("C");
	std::use_facet<std::ctype<char>>(c).toupper(&s[0], &s[0] + s.size());
	std::use_facet<std::collate<char>>(c).transform(s.data(), s.data() + s.size());
	std::mt19937 g(1);
	std::uniform_int_distribution<int>(1, 6)(g);
	std::normal_distribution<>()(g);
	std::filesystem::path p("/usr/lib/../bin/./x.txt");
	p.lexically_normal().replace_extension(".y").string();
	(void)std::filesystem::exists("/usr");
	for (auto &e : std::filesystem::directory_iterator("/usr"))
		(void)e.is_directory();
	std::stod("2.5e3");
	std::stoull("123456789");
	std::to_string(2.5);
}

int compare(const void *a, const void *b)
{
	return *static_cast<const int *>(a) - *static_cast<const int *>(b);
}

void libc()
{
	char buffer[256], *end;
	wchar_t wide[64];
	std::snprintf(buffer, sizeof(buffer), "%d %5.3f %s %-10s|%x %lld %c %p %e %g %%", 1, 2.5,
		      "abc", "d", 255, 1LL << 40, 'x', buffer, 1e10, 0.0001);
	int a, list[] = {5, 3, 1, 4, 2};
	float f;
	char word[16];
	std::sscanf("12 3.5 word", "%d %f %15s", &a, &f, word);
	std::qsort(list, 5, sizeof(int), compare);
	std::bsearch(&a, list, 5, sizeof(int), compare);
	std::strtod("1.5e10", &end);
	std::strtoul("0x1f", &end, 0);
	std::strtol("-12", &end, 10);
	std::strcpy(buffer, "a,b,c");
	for (char *p = std::strtok(buffer, ","); p; p = std::strtok(nullptr, ","))
		std::strlen(p);
	std::mbstowcs(wide, "wide", 64);
	std::swprintf(wide, 64, L"%ls %d", L"x", 3);
	std::strftime(buffer, sizeof(buffer), "%c", std::gmtime(&(const time_t &)(time_t){0}));
	void *p = std::malloc(100000);
	p = std::realloc(p, 200000);
	std::free(p);
	std::getenv("PATH");
	setenv("XSP_EXERCISE", "1", 1);
	std::strchr("abc", 'b');
	std::strstr("hello world", "wor");
	std::memchr("abc", 'c', 3);
	std::strspn("aab", "a");
	std::strerror(2);
	std::div(7, 2);
	std::FILE *o = std::fopen("/proc/self/stat", "r");
	if (o) {
		std::fgets(buffer, sizeof(buffer), o);
		std::fseek(o, 0, SEEK_SET);
		std::fread(buffer, 1, 10, o);
		std::getc(o);
		std::fclose(o);
	}
	std::pow(2.5, 3.1);
	std::sin(0.5);
	std::fmod(5, 3);
	getpid();
	sysconf(_SC_PAGESIZE);
}

void mark(unsigned value)
{
	syscall(SYS_getpriority, PRIO_PROCESS, value);
}

} // namespace

int main()
{
	void (*const parts[])() = {exceptions, jumps, streams, containers, text, libc};

	for (auto part : parts) {
		mark(0x58535001);
		part();
		mark(0x58535002);
	}
	return 0;
}
