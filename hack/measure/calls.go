package main

import (
	"maps"
	"slices"
	"strings"
)

// calls are the functions and methods of other files in the package that each file calls or passes on.
type calls map[string]map[string]map[string]bool

// arrow is a call from one file to another.
type arrow struct {
	from, to string
	names    []string
}

func (a arrow) String() string { return a.from + " -> " + a.to + ": " + strings.Join(a.names, " ") }

func (c calls) add(from, to, name string) {
	if from == to {
		return
	}
	if c[from] == nil {
		c[from] = map[string]map[string]bool{}
	}
	if c[from][to] == nil {
		c[from][to] = map[string]bool{}
	}
	c[from][to][name] = true
}

// arrows is the number of file pairs with a call.
func (c calls) arrows() (n int) {
	for _, to := range c {
		n += len(to)
	}
	return n
}

// circles are the arrows that are part of a circle.
func (c calls) circles() []arrow {
	var found []arrow
	for _, from := range slices.Sorted(maps.Keys(c)) {
		for _, to := range slices.Sorted(maps.Keys(c[from])) {
			if c.reaches(to, map[string]bool{})[from] {
				found = append(found, arrow{from, to, slices.Sorted(maps.Keys(c[from][to]))})
			}
		}
	}
	return found
}

// reaches are the files that a file calls directly or indirectly.
func (c calls) reaches(from string, seen map[string]bool) map[string]bool {
	for to := range c[from] {
		if !seen[to] {
			seen[to] = true
			c.reaches(to, seen)
		}
	}
	return seen
}
