// Package evaluate reads and renders charts in a sandboxed process, which is the first to read the input of tenants. It has both sides of
// the communication: the question and its answer, and the lookups of templates.
package evaluate

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"

	"github.com/kubeop/kubeop/delivery/message"
	"github.com/kubeop/kubeop/delivery/release/charts"
	"github.com/kubeop/kubeop/delivery/release/fault"
	"github.com/kubeop/kubeop/delivery/release/manifest"
)

// Input is the question: a chart, with how to render it. It is sent to the sandboxed process, which is the first to read the input of
// tenants.
type Input struct {
	// Files are the files of the chart as charts.Cache returns them. They are appended to the message unchanged, and Sent lists them.
	Files []*loader.BufferedFile `cbor:"-"`
	Sent  []sentFile
	// ValuesFiles are files of the chart. Values are merged over them. Previous are the values of the last release to keep.
	ValuesFiles      []string
	Values, Previous map[string]any
	Release          chartutil.ReleaseOptions
	Capabilities     *chartutil.Capabilities
	// SkipSchema skips the check of the values against the chart's schema.
	SkipSchema bool
	// KindsThere: the chart's CustomResourceDefinitions are installed. If it is false, a chart that has some is read but not rendered.
	KindsThere bool
}

// sentFile is a file that is appended to a message, with its size in bytes.
type sentFile struct {
	Name string
	Size int
}

// Message returns the message in pieces, so that files, which may be large, are not copied.
func (in Input) Message() ([][]byte, error) {
	pieces := make([][]byte, 1, 1+len(in.Files))
	in.Sent = make([]sentFile, 0, len(in.Files))
	for _, f := range in.Files {
		in.Sent, pieces = append(in.Sent, sentFile{f.Name, len(f.Data)}), append(pieces, f.Data)
	}
	var err error
	pieces[0], err = message.Write(in)
	return pieces, err
}

// evaluationIn decodes a message.
func evaluationIn(message []byte) (*Input, error) {
	in := &Input{}
	rest, err := reader.ReadFirst(message, in)
	if err != nil {
		return nil, fmt.Errorf("reading what to evaluate: %w", err)
	}
	for _, f := range in.Sent {
		if f.Size < 0 || f.Size > len(rest) {
			return nil, errors.New("reading what to evaluate: a file is cut off")
		}
		in.Files = append(in.Files, &loader.BufferedFile{Name: f.Name, Data: rest[:f.Size:f.Size]})
		rest = rest[f.Size:]
	}
	if len(rest) > 0 {
		return nil, errors.New("reading what to evaluate: more follows than was announced")
	}
	return in, nil
}

// Output is the answer.
type Output struct {
	// Templates are the rendered templates by path: NOTES.txt as text, and the objects of the others in JSON.
	Templates map[string]string
	// Kinds: nothing was rendered, because the chart's CustomResourceDefinitions must be installed first.
	Kinds bool
	// Error says why there is no result. Render and TooLarge are its classes. Rendering: it is the cause of an error of fault.Render.
	Error                       string
	Render, TooLarge, Rendering bool
}

// Failure returns the error with its original classes, joined with the errors of lookups, which the parent has with their types.
func (e *Output) Failure(lookups ...error) error {
	if e.Error == "" {
		return nil
	}
	t := &remoteError{text: e.Error, classes: lookups}
	if len(lookups) > 0 {
		t.classes = append(t.classes, fault.ErrLookup)
	}
	if e.Render && !e.Rendering {
		t.classes = append(t.classes, fault.ErrRender)
	}
	if e.TooLarge {
		t.classes = append(t.classes, fault.ErrTooLarge)
	}
	if e.Rendering {
		return fault.Render(t)
	}
	return t
}

// remoteError is an error from another process.
type remoteError struct {
	text    string
	classes []error
}

func (e *remoteError) Error() string   { return e.text }
func (e *remoteError) Unwrap() []error { return e.classes }

// Function is the name of Chart.
const Function = "chart"

// Chart reads a chart and its values and renders it, like Helm and in Helm's order. It is the function of the sandboxed process. ask
// answers a template's lookup, note records what is being read or rendered. Errors of the chart are in the answer; an error of Chart means
// that the input does not come from this package.
func Chart(input []byte, ask func([]byte) ([]byte, error), note func(string)) ([]byte, error) {
	in, err := evaluationIn(input)
	if err != nil {
		return nil, err
	}
	out, err := in.run(ask, note)
	if err != nil {
		out = failedWith(err)
	}
	return pack(out)
}

func (in *Input) run(ask func([]byte) ([]byte, error), note func(string)) (out *Output, err error) {
	defer fault.Recovered("evaluating the chart", &err)
	c, err := charts.Parse(in.Files, note)
	if err != nil {
		return nil, err
	}
	note("reading the values of chart " + c.Name())
	values, err := charts.Values(c, in.ValuesFiles, in.Values)
	if err != nil {
		return nil, fault.Render(err)
	}
	values = chartutil.CoalesceTables(values, in.Previous)
	kinds := !in.KindsThere && slices.ContainsFunc(in.Files, inCRDFolder)
	if err := chartutil.ProcessDependenciesWithMerge(c, values); err != nil {
		return nil, renderedAs(err, kinds)
	}
	if err := fewNodes(c, note); err != nil {
		return nil, fault.Render(err)
	}
	if kinds {
		return &Output{Kinds: true}, nil
	}
	templates, err := in.render(c, values, ask, note)
	return &Output{Templates: templates}, err
}

// inCRDFolder reports whether a file is in the folder of CustomResourceDefinitions of a chart or a subchart.
func inCRDFolder(f *loader.BufferedFile) bool {
	return strings.HasPrefix(charts.InItsChart(f.Name), "crds/")
}

// renderedAs sets the class of an error for a chart whose definitions are read before Helm reads the chart.
func renderedAs(err error, first bool) error {
	if first {
		return fault.Render(err)
	}
	return err
}

// render checks and renders the chart in the order of Helm's actions.
func (in *Input) render(c *chart.Chart, values map[string]any, ask func([]byte) ([]byte, error), note func(string)) (map[string]string, error) {
	note("checking the values of chart " + c.Name())
	all, err := chartutil.ToRenderValuesWithSchemaValidation(c, values, in.Release, in.Capabilities, in.SkipSchema)
	if err != nil {
		return nil, err
	}
	if wanted := c.Metadata.KubeVersion; wanted != "" && !chartutil.IsCompatibleRange(wanted, in.Capabilities.KubeVersion.String()) {
		return nil, fmt.Errorf("chart requires kubeVersion: %s which is incompatible with Kubernetes %s", wanted, in.Capabilities.KubeVersion.String())
	}
	marks := newMarks(c, note)
	templates, err := engine.RenderWithClientProvider(c, all, clients{ask: ask, marks: marks})
	if err != nil {
		return nil, marks.corrected(err)
	}
	if err := fewNodesIn(templates, note); err != nil {
		return nil, err
	}
	return manifest.InJSON(templates, note)
}
