// SPDX-License-Identifier: BSD-2-Clause
// inlined_cc.cc - as inlined.c: in namespaces, members and lambdas, between functions of the library's headers.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <thread>
#include <vector>

namespace shop
{

__attribute__((noinline)) unsigned long checkout(unsigned long x)
{
	for (unsigned long i = 0; i < 400000; i++) {
		x = x * 6364136223846793005UL + 1;
		__asm__ volatile("" : "+r"(x));
	}
	return x;
}

struct Cart {
	std::vector<unsigned long> items;

	// std::vector's operator[] is inlined into it
	void heat(unsigned long rounds)
	{
		for (unsigned long i = 0; i < rounds; i++) {
			unsigned long &item = items[i % items.size()];
			item = item * 6364136223846793005UL + i;
			__asm__ volatile("" : "+m"(item));
		}
	}
};

namespace
{

void nap()
{
	std::this_thread::sleep_for(std::chrono::milliseconds(2));
}

unsigned long pay(unsigned long x)
{
	return checkout(x + 1) ^ 5;
}

// the lambda is inlined into a function of <algorithm>
void arrange(std::vector<unsigned long> &items)
{
	std::sort(items.begin(), items.end(), [](unsigned long a, unsigned long b) {
		for (int i = 0; i < 20; i++) {
			a = a * 6364136223846793005UL + 1;
			b = b * 6364136223846793005UL + 1;
			__asm__ volatile("" : "+r"(a), "+r"(b));
		}
		return a < b;
	});
}

} // namespace
} // namespace shop

int main(int argc, char **argv)
{
	const long rounds = argc > 1 ? atol(argv[1]) : 300;
	shop::Cart cart;
	unsigned long x = static_cast<unsigned long>(argc);

	for (unsigned long i = 0; i < 1000; i++)
		cart.items.push_back(i * 7919);
	for (long i = 0; i < rounds; i++) {
		cart.heat(400000);
		x = shop::pay(x);
		if (i % 10 == 0)
			shop::arrange(cart.items);
		shop::nap();
	}
	printf("%lu\n", x + cart.items[0]);
	return 0;
}
