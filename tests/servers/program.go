// SPDX-License-Identifier: BSD-2-Clause
// Waits for a line, works, prints what it found and how often it called its functions.
package main

// #include <stdlib.h>
import "C"

import (
	"bufio"
	"fmt"
	"os"
	"runtime"
	"sort"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

var leafs, deeps, panics, absolutes, grown int64

//go:noinline
func leaf(x int64) int64 {
	atomic.AddInt64(&leafs, 1)
	return x*31 + 7
}

//go:noinline
func absolute(x int) int {
	absolutes++
	return int(C.abs(C.int(x)))
}

//go:noinline
func mayPanic(n int64) {
	atomic.AddInt64(&panics, 1)
	if n%3 == 0 {
		panic("third")
	}
}

func caught(n int64) (hit bool) {
	defer func() { hit = recover() != nil }()
	mayPanic(n)
	return false
}

// Recurses until its goroutine's stack was copied to a larger place some times: a function whose
// frame finds no room calls runtime.morestack and begins again.
//
//go:noinline
func deep(n int64) int64 {
	var frame [64]int64
	atomic.AddInt64(&deeps, 1)
	frame[n%64] = n
	if n == 0 {
		return leaf(0)
	}
	return deep(n-1) + frame[n%64]
}

func work(rounds int64) string {
	var group sync.WaitGroup
	var total, recovered int64
	for g := int64(0); g < 8; g++ {
		group.Add(1)
		go func(g int64) {
			defer group.Done()
			for i := int64(0); i < rounds; i++ {
				atomic.AddInt64(&total, leaf(i+g))
				if caught(i) {
					atomic.AddInt64(&recovered, 1)
				}
				if i%32 == 0 {
					time.Sleep(time.Millisecond)
					runtime.Gosched()
				}
			}
			if deepWanted {
				atomic.AddInt64(&total, deep(100+10*g))
			}
		}(g)
	}
	group.Wait()
	runtime.GC()
	words := strings.Fields(strings.Repeat("the quick brown fox ", 50))
	sort.Strings(words)
	n := 0
	for i := 0; i < 50; i++ {
		n += absolute(-i)
	}
	return fmt.Sprintf(`"total":%d,"recovered":%d,"words":%d,"absolute":%d`, total, recovered,
		len(words), n)
}

var deepWanted = len(os.Args) > 1 && os.Args[1] == "deep"

func main() {
	fmt.Fprintln(os.Stderr, "ready")
	bufio.NewReader(os.Stdin).ReadString('\n')
	result := work(200)
	calls := fmt.Sprintf(`"main.leaf":%d,"main.mayPanic":%d,"main.absolute":%d`, leafs, panics, absolutes)
	if deepWanted {
		calls += fmt.Sprintf(`,"main.deep":%d`, deeps)
	}
	fmt.Printf("{\"calls\":{%s},%s}\n", calls, result)
}
