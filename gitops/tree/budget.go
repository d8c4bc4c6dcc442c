package tree

import "github.com/kubeop/kubeop/delivery/budget"

// takes returns how much of the budget the node's own object or problems take, in bytes.
func (n *node) takes() int64 {
	if n.object == nil {
		return weightOf(n.problems)
	}
	return budget.Declared(n.size)
}

// weightOf returns how much memory problems take, in bytes.
func weightOf(problems []Problem) (sum int64) {
	for i := range problems {
		sum += int64(len(problems[i].File) + len(problems[i].Why) + perProblem)
	}
	return sum
}

// perProblem is how much memory a Problem takes in addition to its texts, in bytes.
const perProblem = 144
