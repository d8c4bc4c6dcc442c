// Package few shortens lists, texts and revisions in messages: a message names the first things, and how many more there are, quotes the beginning
// of a text in one printable line, and has the first digits of a hash.
package few

import (
	"golang.org/x/text/language"
	"golang.org/x/text/message"
)

// Of returns the texts if there are at most n, otherwise the first n and More of the others.
func Of(texts []string, n int) []string {
	if len(texts) <= n {
		return texts
	}
	return append(texts[:n:n], More(len(texts)-n))
}

// Lines shortens a list that has no line about the rest: lines are its first lines, of all in all. It returns at most n lines, of which the last is
// More of the others if there are more.
func Lines(lines []string, all, n int) []string {
	if all <= n || len(lines) < n {
		return lines
	}
	return append(lines[:n-1:n-1], More(all-n+1))
}

// More says how many things a message does not name, such as "and 1,200 more".
func More(n int) string { return "and " + Number(n) + " more" }

// Count formats a number of things, such as "1 app" and "1,200 apps".
func Count(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return Number(n) + " " + thing + "s"
}

// Number formats a number with separated thousands.
func Number(n int) string { return message.NewPrinter(language.English).Sprint(n) }
