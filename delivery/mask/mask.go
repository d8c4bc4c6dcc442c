// Package mask hides secret values in messages.
package mask

import (
	"encoding/base64"
	"encoding/json"
	"strconv"
	"strings"
)

// hidden replaces a hidden value.
const hidden = "***"

// Shortest is the length in bytes below which a value is not hidden, because it would also hide parts of ordinary words.
const Shortest = 4

// Mask hides values in a text.
type Mask func(text string) string

// Of returns a Mask that hides each value in plain form, as base64, and as Go and JSON write it within quotes. If hidden values overlap, or
// one is part of another, no part of any of them stays.
func Of(values []string) Mask {
	forms := formsOf(values)
	return func(text string) string { return replace(text, forms) }
}

// Texts returns a Mask that hides exactly these texts, however short they are. If hidden texts overlap, no part of any of them stays.
func Texts(texts []string) Mask {
	return func(text string) string { return replace(text, texts) }
}

func formsOf(values []string) []string {
	var forms []string
	for _, value := range values {
		if len(value) < Shortest {
			continue
		}
		forms = append(forms, value, base64.StdEncoding.EncodeToString([]byte(value)))
		asJSON, _ := json.Marshal(value) // A text can be encoded.
		for _, quoted := range []string{strconv.Quote(value), string(asJSON)} {
			if inner := quoted[1 : len(quoted)-1]; inner != value {
				forms = append(forms, inner)
			}
		}
	}
	return forms
}

// replace replaces each part of the text that words cover by hidden.
func replace(text string, words []string) string {
	covered := cover(text, words)
	if covered == nil {
		return text
	}
	var b strings.Builder
	for i := range len(text) {
		switch {
		case !covered[i]:
			b.WriteByte(text[i])
		case i == 0 || !covered[i-1]:
			b.WriteString(hidden)
		}
	}
	return b.String()
}

// cover marks the bytes of the text that belong to one of the words; nil if there are none.
func cover(text string, words []string) (covered []bool) {
	for _, word := range words {
		for from := 0; ; {
			at := strings.Index(text[from:], word)
			if at < 0 {
				break
			}
			if covered == nil {
				covered = make([]bool, len(text))
			}
			at += from
			for i := at; i < at+len(word); i++ {
				covered[i] = true
			}
			from = at + 1
		}
	}
	return covered
}
