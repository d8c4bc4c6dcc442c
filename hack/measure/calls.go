package main

import (
	"maps"
	"slices"
	"strings"
)

// calls are the functions and methods that each file of a package calls of each other, or passes on.
type calls map[string]map[string]map[string]bool

// arrow is what one file calls of another.
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

// arrows is how many pairs of files there are of which the one calls the other.
func (c calls) arrows() (n int) {
	for _, to := range c {
		n += len(to)
	}
	return n
}

// circles are the arrows from whose end a way leads back to their beginning.
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

// reaches are the files that a file leads to.
func (c calls) reaches(from string, seen map[string]bool) map[string]bool {
	for to := range c[from] {
		if !seen[to] {
			seen[to] = true
			c.reaches(to, seen)
		}
	}
	return seen
}
