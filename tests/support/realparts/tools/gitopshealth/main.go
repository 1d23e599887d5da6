// Judges Kubernetes objects as Argo CD and Flux do, with the libraries that they are built on.
//
// In: one JSON object on the standard input, with a Lua script (as in Argo CD's resource.customizations.health), CEL
// expressions by name (as in Flux's healthCheckExprs) and objects. Out: for each object the result of the script, of
// the expressions, and of kstatus.
package main

import (
	"encoding/json"
	"fmt"
	"os"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/ext"
	lua "github.com/yuin/gopher-lua"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/cli-utils/pkg/kstatus/status"
)

type input struct {
	Lua     string            `json:"lua"`
	Cel     map[string]string `json:"cel"`
	Objects []json.RawMessage `json:"objects"`
}

type output struct {
	Argo    map[string]string `json:"argo"`
	Flux    string            `json:"flux"`
	Kstatus string            `json:"kstatus"`
}

func main() {
	var given input
	check(json.NewDecoder(os.Stdin).Decode(&given))
	found := []output{}
	for _, text := range given.Objects {
		object := map[string]any{}
		check(utiljson.Unmarshal(text, &object)) // integers as Kubernetes has them
		result, err := status.Compute(&unstructured.Unstructured{Object: object})
		check(err)
		found = append(found, output{argo(given.Lua, object), flux(given.Cel, object), string(result.Status)})
	}
	check(json.NewEncoder(os.Stdout).Encode(found))
}

// The libraries that Argo CD opens for a health script, apart from its restricted os.
func argo(script string, object map[string]any) map[string]string {
	state := lua.NewState(lua.Options{SkipOpenLibs: true})
	defer state.Close()
	for _, library := range []struct {
		name string
		open lua.LGFunction
	}{{lua.LoadLibName, lua.OpenPackage}, {lua.BaseLibName, lua.OpenBase}, {lua.TabLibName, lua.OpenTable}, {lua.StringLibName, lua.OpenString}} {
		check(state.CallByParam(lua.P{Fn: state.NewFunction(library.open), NRet: 0, Protect: true}, lua.LString(library.name)))
	}
	state.SetGlobal("obj", value(state, object))
	check(state.DoString(script))
	table, ok := state.Get(-1).(*lua.LTable)
	if !ok {
		check(fmt.Errorf("the script returned %s, not a table", state.Get(-1).Type()))
	}
	return map[string]string{
		"status":  lua.LVAsString(table.RawGetString("status")),
		"message": lua.LVAsString(table.RawGetString("message")),
	}
}

func value(state *lua.LState, given any) lua.LValue {
	switch typed := given.(type) {
	case map[string]any:
		table := state.NewTable()
		for key, inside := range typed {
			table.RawSetString(key, value(state, inside))
		}
		return table
	case []any:
		table := state.NewTable()
		for _, inside := range typed {
			table.Append(value(state, inside))
		}
		return table
	case string:
		return lua.LString(typed)
	case int64:
		return lua.LNumber(typed)
	case float64:
		return lua.LNumber(typed)
	case bool:
		return lua.LBool(typed)
	}
	return lua.LNil
}

// As Flux evaluates its expressions (RFC 0009): parsed and not compiled, failed before current, and InProgress for an
// older version of the object. An object without a status is an error for the expressions, and not ready for Flux.
func flux(expressions map[string]string, object map[string]any) string {
	observed, found, _ := unstructured.NestedInt64(object, "status", "observedGeneration")
	generation, _, _ := unstructured.NestedInt64(object, "metadata", "generation")
	if found && observed != generation {
		return string(status.InProgressStatus)
	}
	environment, err := cel.NewEnv(
		cel.CrossTypeNumericComparisons(true), cel.OptionalTypes(), ext.Strings(), ext.Sets(), ext.Encoders())
	check(err)
	for _, one := range []struct {
		name   string
		status status.Status
	}{{"inProgress", status.InProgressStatus}, {"failed", status.FailedStatus}, {"current", status.CurrentStatus}} {
		expression, given := expressions[one.name]
		if !given {
			continue
		}
		parsed, issues := environment.Parse(expression)
		check(issues.Err())
		program, err := environment.Program(parsed)
		check(err)
		result, _, err := program.Eval(object)
		if err != nil {
			return string(status.UnknownStatus)
		}
		if result.Value() == true {
			return string(one.status)
		}
	}
	return string(status.InProgressStatus)
}

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}
