package audit

import (
	"strconv"

	"github.com/kubeop/kubeop/internal/manager/page"
	"github.com/kubeop/kubeop/internal/manager/problem"
)

// position returns the ID of the last event of the previous page, 0 for the first page.
func position(q page.Query) (int64, error) {
	key, err := q.Key()
	if err != nil || key == "" {
		return 0, err
	}
	id, err := strconv.ParseInt(key, 10, 64)
	if err != nil || id < 1 {
		return 0, problem.New(problem.BadRequest, "The cursor is not one that this list answered.", problem.Fault{Location: "query.cursor", Message: "is no cursor of this list"})
	}
	return id, nil
}
