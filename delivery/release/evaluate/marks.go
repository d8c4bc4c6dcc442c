package evaluate

import (
	"bytes"
	"crypto/rand"
	"errors"
	"fmt"
	"path"
	"regexp"
	"strconv"
	"strings"

	"helm.sh/helm/v3/pkg/chart"
)

// marked records which template is being rendered, which Helm's engine does not report: each template begins with a lookup that only this
// package understands. It renders to nothing.
type marked struct {
	note func(string)
	// secret prevents a template from pretending to be another one.
	secret string
	names  []string
	width  int
	places *regexp.Regexp
}

// newMarks adds marks to the templates of a chart and its subcharts. Partials are not marked, because they are not rendered by themselves.
func newMarks(c *chart.Chart, note func(string)) *marked {
	m := &marked{note: note, secret: rand.Text()}
	m.mark(c)
	m.width = len(m.text(0))
	if len(m.names) > 0 {
		m.places = regexp.MustCompile(`([^\s"():<>]+):1:([0-9]+)`)
	}
	return m
}

func (m *marked) mark(c *chart.Chart) {
	for i, t := range c.Templates {
		if t == nil || strings.HasPrefix(path.Base(t.Name), "_") {
			continue
		}
		text := m.text(len(m.names))
		m.names = append(m.names, path.Join(c.ChartFullPath(), t.Name))
		c.Templates[i] = &chart.File{Name: t.Name, Data: bytes.Join([][]byte{[]byte(text), t.Data}, nil)}
	}
	for _, sub := range c.Dependencies() {
		m.mark(sub)
	}
}

func (m *marked) text(n int) string {
	return fmt.Sprintf(`{{if lookup %q "%06d" "" ""}}{{end}}`, m.secret, n)
}

// pass records the template that is being rendered, if the lookup is a mark.
func (m *marked) pass(secret, number string) bool {
	if secret != m.secret {
		return false
	}
	if n, err := strconv.Atoi(number); err == nil && n < len(m.names) {
		m.note("template " + m.names[n])
	}
	return true
}

// corrected returns the engine's error with the column numbers of first lines as they are without marks.
func (m *marked) corrected(err error) error {
	if m.places == nil {
		return err
	}
	known := map[string]bool{}
	for _, name := range m.names {
		known[name] = true
	}
	text := m.places.ReplaceAllStringFunc(err.Error(), func(place string) string {
		parts := m.places.FindStringSubmatch(place)
		column, convErr := strconv.Atoi(parts[2])
		if convErr != nil || !known[parts[1]] || column < m.width {
			return place
		}
		return fmt.Sprintf("%s:1:%d", parts[1], column-m.width)
	})
	return errors.New(text)
}
