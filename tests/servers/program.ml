(* SPDX-License-Identifier: BSD-2-Clause *)
(* Waits for a line, recurses deeper than a stack is at first, and prints how often it called its functions. *)
let deeps = ref 0
let raises = ref 0

let[@inline never] rec deep n =
  incr deeps;
  if n = 0 then 0 else 1 + deep (n - 1)

let[@inline never] may_raise n =
  incr raises;
  if n mod 3 = 0 then raise Not_found;
  deep n

let () =
  prerr_endline "ready";
  ignore (read_line ());
  let total = ref 0 in
  for round = 1 to 30 do
    Domain.join (Domain.spawn (fun () -> total := !total + deep 20000));
    total := !total + try may_raise round with Not_found -> 1
  done;
  Printf.printf "{\"total\": %d, \"calls\": {\"deep\": %d, \"may_raise\": %d}}\n" !total !deeps !raises
