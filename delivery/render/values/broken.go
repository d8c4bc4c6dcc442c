package values

import (
	"bytes"
	"errors"
	"fmt"
	"regexp"
	"strconv"

	"github.com/kubeop/kubeop/delivery/yamlcheck"
)

// errNoMapping says that values are something else than names with values.
var errNoMapping = errors.New("values must be a mapping, such as \"replicas: 2\"")

var (
	// parserMessage is what the YAML library says; it leaves the first line out.
	parserMessage = regexp.MustCompile(`yaml: (?:line (\d+): )?([^\n]*)`)
	// countedFromZero are the messages of the library's grammar; those of its scanner count lines from 1.
	countedFromZero = regexp.MustCompile(`^did not find expected (<document start>|node content|'-' indicator|key|',' or '[\]}]')$`)
)

// brokenFile words an error about the text of a file as "file:line: why".
func brokenFile(name string, data []byte, err error) error {
	m := parserMessage.FindStringSubmatch(err.Error())
	if m == nil || errors.Is(err, yamlcheck.ErrTooLarge) {
		return fmt.Errorf("%s: %w", name, err)
	}
	line, err := strconv.Atoi(m[1])
	switch {
	case err != nil:
		line = 1
	case countedFromZero.MatchString(m[2]):
		line++
	}
	// What is missing at the end of the file is found beyond it.
	line = min(line, 1+bytes.Count(bytes.TrimSuffix(data, []byte("\n")), []byte("\n")))
	return fmt.Errorf("%s:%d: broken YAML: %s", name, line, m[2])
}
