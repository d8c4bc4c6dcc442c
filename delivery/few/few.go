// Package few shortens lists in messages: a message names the first things, and how many more there are.
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

// More says how many things a message does not name, such as "and 1,200 more".
func More(n int) string { return message.NewPrinter(language.English).Sprintf("and %d more", n) }
