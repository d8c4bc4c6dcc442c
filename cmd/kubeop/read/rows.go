package read

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/cmd/kubeop/output"
	"github.com/kubeop/kubeop/cmd/kubeop/target"
)

// rows are rows of tables of one kind.
type rows struct {
	kind target.Kind
	wide bool
	// paths: name each object by its tenant and project too.
	paths bool
	paint output.Paint

	headers []metav1.TableColumnDefinition
	columns output.Columns
	// printed are the cells of each object as they were printed last, without its age.
	printed map[string]string
}

func newRows(kind target.Kind, wide, paths bool, paint output.Paint) *rows {
	return &rows{kind: kind, wide: wide, paths: paths, paint: paint, printed: map[string]string{}}
}

// add adds the rows that differ from what was printed.
func (r *rows) add(table *metav1.Table) {
	if r.headers == nil && len(table.Rows) > 0 {
		r.headers = table.ColumnDefinitions
		var titles []string
		for _, h := range r.headers {
			if r.wide || h.Priority == 0 {
				titles = append(titles, strings.ToUpper(h.Name))
			}
		}
		r.columns.Add(titles...)
	}
	slices.SortFunc(table.Rows, func(a, b metav1.TableRow) int { return cmp.Compare(r.name(a), r.name(b)) })
	for _, row := range table.Rows {
		r.row(row)
	}
}

func (r *rows) row(row metav1.TableRow) {
	if len(row.Cells) == 0 {
		return
	}
	var cells []string
	for i, cell := range row.Cells {
		if i < len(r.headers) && !r.wide && r.headers[i].Priority > 0 {
			continue
		}
		text := ""
		if cell != nil {
			text = fmt.Sprint(cell)
		}
		switch {
		case i == 0 && r.paths:
			text = r.name(row) + strings.TrimPrefix(text, r.object(row).Name)
		case i < len(r.headers) && r.headers[i].Name == v1alpha1.ReadyCondition:
			text = paintStatus(r.paint, metav1.ConditionStatus(text), text)
		}
		cells = append(cells, strings.Join(strings.Fields(text), " "))
	}
	name, all := r.name(row), strings.Join(cells[:len(cells)-1], "\x00")
	if r.printed[name] != all {
		r.printed[name] = all
		r.columns.Add(cells...)
	}
}

// name is the path of the row's object.
func (r *rows) name(row metav1.TableRow) string {
	object := r.object(row)
	typed := r.kind.New()
	typed.SetNamespace(object.Namespace)
	typed.SetName(object.Name)
	return target.PathOf(typed)
}

// object is the metadata of the row's object. A row without has no name.
func (r *rows) object(row metav1.TableRow) metav1.PartialObjectMetadata {
	var object metav1.PartialObjectMetadata
	if err := json.Unmarshal(row.Object.Raw, &object); err != nil {
		return metav1.PartialObjectMetadata{}
	}
	return object
}

func (r *rows) write(w io.Writer) error {
	if err := r.columns.Write(w, ""); err != nil {
		return fmt.Errorf("writing rows: %w", err)
	}
	return nil
}

// paintStatus colours a text by the status of a condition.
func paintStatus(paint output.Paint, status metav1.ConditionStatus, text string) string {
	switch status {
	case metav1.ConditionTrue:
		return paint.Green(text)
	case metav1.ConditionFalse:
		return paint.Red(text)
	}
	return paint.Yellow(text)
}
