package output

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/cli-runtime/pkg/printers"
	"sigs.k8s.io/yaml"
)

// Format is the value of -o.
type Format string

// Formats. Wide is Table with more columns.
const (
	Table Format = "table"
	Wide  Format = "wide"
	JSON  Format = "json"
	YAML  Format = "yaml"
)

// ForPrograms reports whether the format is JSON or YAML.
func (f Format) ForPrograms() bool { return f == JSON || f == YAML }

// AddFlag adds -o with these formats, of which the first is the default.
func (f *Format) AddFlag(c *cobra.Command, formats ...Format) {
	*f = formats[0]
	names := make([]string, len(formats))
	for i, format := range formats {
		names[i] = string(format)
	}
	c.Flags().VarP(&choice{f, formats}, "output", "o", "format: "+strings.Join(names, ", "))
	// It fails only for a flag that does not exist.
	_ = c.RegisterFlagCompletionFunc("output", cobra.FixedCompletions(names, cobra.ShellCompDirectiveNoFileComp))
}

type choice struct {
	*Format
	of []Format
}

// String implements pflag.Value, as the other methods do.
func (c *choice) String() string { return string(*c.Format) }

// Type is what --help names the value.
func (c *choice) Type() string { return "format" }

// Set refuses what is no format of the command.
func (c *choice) Set(s string) error {
	if !slices.Contains(c.of, Format(s)) {
		return fmt.Errorf("it is one of %v", c.of)
	}
	*c.Format = Format(s)
	return nil
}

// Write writes a value as JSON or YAML: an object of Kubernetes without managedFields, or any value that has JSON.
func (f Format) Write(w io.Writer, value any) error {
	if object, ok := value.(runtime.Object); ok {
		var printer printers.ResourcePrinter = &printers.JSONPrinter{}
		if f == YAML {
			printer = &printers.YAMLPrinter{}
		}
		return (&printers.OmitManagedFieldsPrinter{Delegate: printer}).PrintObj(object, w)
	}
	text, err := json.MarshalIndent(value, "", "    ")
	if err != nil {
		return err
	}
	if f == YAML {
		if text, err = yaml.JSONToYAML(text); err != nil {
			return err
		}
	}
	_, err = fmt.Fprintln(w, strings.TrimSuffix(string(text), "\n"))
	return err
}
